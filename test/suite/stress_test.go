//go:build stress

package suite_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
)

// With the build tag the suite is five times as patient, since everything runs at once. It reads
// STRESS_TEST_COUNT from the environment: how many times each shape runs, 10 by default.

func TestStressInOrder(t *testing.T) { stress(t, newStore(t).inOrder()) }

func TestStressInAnyOrder(t *testing.T) { stress(t, newStore(t).inAnyOrder()) }

func TestStressInNewGroups(t *testing.T) { stress(t, newStore(t).inNewGroups()) }

func stress(t *testing.T, s shape) {
	t.Helper()
	tests.TestPubSubStressTest(t, s.features, s.pubSub, s.inGroup)
}

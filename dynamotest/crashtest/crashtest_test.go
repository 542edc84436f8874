package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/dynamotest/crashtest"
)

func TestClientsGetRepliesThoughInstancesAreReplaced(t *testing.T) {
	t.Parallel()
	f := crashtest.New(t, 1, openNotes)
	f.Start()
	f.Start()
	calm := f.Storm(0.05)
	client := f.Client()
	for n := range 60 {
		if n%10 == 5 {
			f.Replace()
		}
		put(t, client, fmt.Sprint(n))
	}
	calm()
	assert.Equal(t, 60, stored(t, f))
}

func TestNoReplyTellsOfACrash(t *testing.T) {
	t.Parallel()
	f := crashtest.New(t, 1, openNotes)
	last := f.Start()
	client := f.Client()
	var writing sync.WaitGroup
	ended := make(chan struct{})
	for c := range 8 {
		writing.Add(1)
		go func() {
			defer writing.Done()
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				status, err := send(t.Context(), client, fmt.Sprint(c, "-", n))
				if !assert.NoError(t, err) || !assert.Equal(t, http.StatusOK, status) {
					return
				}
			}
		}()
	}
	for range 30 {
		next := f.Start()
		last.CrashAfter(20)
		<-last.Ended()
		last = next
	}
	close(ended)
	writing.Wait()
}

func TestReplaceBothCrashesAndStops(t *testing.T) {
	t.Parallel()
	var crashes, ends atomic.Int64
	f := crashtest.New(t, 1, func(ctx context.Context, client *dynamodb.Client, l net.Listener) (*notes, error) {
		n, err := openNotes(ctx, client, l)
		if err == nil {
			n.run = func(ctx context.Context) error {
				<-ctx.Done()
				if n.put(context.WithoutCancel(ctx), "x") != nil {
					crashes.Add(1)
				}
				ends.Add(1)
				return nil
			}
		}
		return n, err
	})
	f.Start()
	for range 20 {
		f.Replace()
	}
	require.Eventually(t, func() bool { return ends.Load() == 20 }, time.Minute, time.Millisecond)
	assert.Greater(t, crashes.Load(), int64(2))
	assert.Less(t, crashes.Load(), int64(18))
}

func TestACrashedInstanceChangesNothing(t *testing.T) {
	t.Parallel()
	f := crashtest.New(t, 1, openNotes)
	first := f.Start()
	working, replied := make(chan struct{}), make(chan error, 1)
	first.Proxy.Inject(dynamotest.Pause(func(ctx context.Context) {
		close(working)
		<-ctx.Done() // the request of the client ends with its connection
	}), dynamotest.On("PutItem"), dynamotest.Times(1))
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, first.URL()+"/a", http.NoBody)
		if err == nil {
			var response *http.Response
			if response, err = http.DefaultClient.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}
		replied <- err
	}()
	<-working
	first.Crash()

	require.Error(t, <-replied, "a crashed instance must not reply")
	require.ErrorContains(t, first.Service.put(t.Context(), "b"), "crashtest: the instance has crashed")
	<-first.Ended()
	assert.Zero(t, stored(t, f))
	f.Start()
	put(t, f.Client(), "c")
	assert.Equal(t, 1, stored(t, f))
}

func TestAnInstanceCanCrashAtEachRequest(t *testing.T) {
	t.Parallel()
	const total = 20
	late := 0
	for after := range total {
		f := crashtest.New(t, 1, openNotes)
		i := f.Start()
		i.CrashAfter(after)
		acknowledged := 0
		for n := range total {
			if i.Service.put(t.Context(), fmt.Sprint(n)) != nil {
				break
			}
			acknowledged++
		}
		<-i.Ended()
		assert.Equal(t, after, acknowledged)
		more := stored(t, f) - acknowledged
		assert.Contains(t, []int{0, 1}, more, "the request of the crash may take effect")
		late += more
	}
	assert.Positive(t, late)
	assert.Less(t, late, total)
}

func TestASeedRepeatsTheFaultsOfCalls(t *testing.T) {
	t.Parallel()
	outcomes := func(seed uint64, others int) (failed []bool) {
		f := crashtest.New(t, seed, openNotes)
		require.NoError(t, f.Fault("mail", 1), "there is no storm")
		defer f.Storm(0.01)()
		for range 100 {
			for n := range others { // the calls of other goroutines change nothing
				_ = f.Fault(fmt.Sprint(n), 0.5)
			}
			err := f.Fault("mail", 0.3)
			if err != nil {
				require.ErrorIs(t, err, crashtest.ErrFault)
			}
			failed = append(failed, err != nil)
		}
		return failed
	}
	first := outcomes(1, 0)
	assert.Equal(t, first, outcomes(1, 3))
	assert.NotEqual(t, first, outcomes(2, 0))
	assert.Contains(t, first, true)
	assert.Contains(t, first, false)
}

func TestAStopEndsRunAndReturnsItsError(t *testing.T) {
	t.Parallel()
	errLate := errors.New("late")
	f := crashtest.New(t, 1, func(ctx context.Context, client *dynamodb.Client, l net.Listener) (*notes, error) {
		n, err := openNotes(ctx, client, l)
		if err == nil {
			n.run = func(ctx context.Context) error {
				<-ctx.Done()
				return errors.Join(errLate, n.put(context.WithoutCancel(ctx), "last"))
			}
		}
		return n, err
	})
	assert.Equal(t, "late", f.Start().Stop().Error())
	assert.Equal(t, 1, stored(t, f), "an instance that stops reaches the database")
}

func TestATestFailsWhoseServiceDoes(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		open crashtest.Open[*notes]
		run  func(f *crashtest.Fleet[*notes])
		want string
	}{
		"that cannot be opened": {
			func(context.Context, *dynamodb.Client, net.Listener) (*notes, error) { return nil, broken },
			func(f *crashtest.Fleet[*notes]) { f.Start() },
			"instance 1 cannot be opened: broken",
		},
		"that ends by itself": {
			func(ctx context.Context, client *dynamodb.Client, l net.Listener) (*notes, error) {
				n, err := openNotes(ctx, client, l)
				n.run = func(context.Context) error { return broken }
				return n, err
			},
			func(f *crashtest.Fleet[*notes]) { <-f.Start().Ended() },
			"instance 1 has ended by itself: broken",
		},
		"whose check fails": {
			openNotes,
			func(f *crashtest.Fleet[*notes]) {
				f.Patience = 100 * time.Millisecond
				f.Start()
				f.Eventually(func(context.Context, *notes) error { return broken })
			},
			"the check still fails after 100ms: broken",
		},
		"without an instance": {
			openNotes,
			func(f *crashtest.Fleet[*notes]) {
				f.Patience = 100 * time.Millisecond
				f.Eventually(func(context.Context, *notes) error { return nil })
			},
			"no instance runs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := probed(t, func(p *probe) { test.run(crashtest.New(p, 1, test.open)) })
			require.Len(t, failures, 1)
			assert.Contains(t, failures[0], test.want)
		})
	}
}

func TestAClientNamesTheLastFailure(t *testing.T) {
	t.Parallel()
	f := crashtest.New(t, 1, openNotes)
	f.Patience = 200 * time.Millisecond
	request := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "/a", http.NoBody)
		require.NoError(t, err)
		response, err := f.Client().Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	require.ErrorContains(t, request(), "no instance runs")
	f.Start().Proxy.Inject(dynamotest.Throttle(), dynamotest.On("PutItem"))
	assert.ErrorContains(t, request(), "503 Service Unavailable")
}

func TestAnInstanceStartsThoughRequestsFail(t *testing.T) {
	t.Parallel()
	f := crashtest.New(t, 1, openNotes)
	failing := f.DB().Inject(dynamotest.InternalError(), dynamotest.On("CreateTable"), dynamotest.Times(10))
	f.Start()
	put(t, f.Client(), "a")
	assert.Equal(t, 10, failing.Fired())
}

package aggregate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestMetadataOfAPlainContextIsEmptyAndWritable(t *testing.T) {
	t.Parallel()

	metadata := aggregate.MetadataFromContext(t.Context())
	assert.NotNil(t, metadata)
	metadata["tenant"] = "a"
	assert.Empty(t, aggregate.MetadataFromContext(t.Context()))
}

func TestMetadataIsLaidOverThatOfTheOuterContext(t *testing.T) {
	t.Parallel()

	outer := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{
		aggregate.CorrelationIDKey: "request-1", "tenant": "a",
	})
	inner := aggregate.ContextWithMetadata(outer, aggregate.Metadata{
		aggregate.CausationIDKey: "command-9", "tenant": "b",
	})

	metadata := aggregate.MetadataFromContext(inner)
	assert.Equal(t, aggregate.Metadata{"correlation_id": "request-1", "causation_id": "command-9", "tenant": "b"}, metadata)
	assert.Equal(t, "request-1", metadata.CorrelationID())
	assert.Equal(t, "command-9", metadata.CausationID())
	assert.Equal(t, "a", aggregate.MetadataFromContext(outer)["tenant"], "the outer context must stay as it was")
}

func TestMetadataInAContextCannotBeChangedFromOutside(t *testing.T) {
	t.Parallel()

	given := aggregate.Metadata{"tenant": "a"}
	ctx := aggregate.ContextWithMetadata(t.Context(), given)
	given["tenant"] = "changed by the giver"
	aggregate.MetadataFromContext(ctx)["tenant"] = "changed by a reader"

	assert.Equal(t, aggregate.Metadata{"tenant": "a"}, aggregate.MetadataFromContext(ctx))
}

func TestNilMetadataHasNoIDs(t *testing.T) {
	t.Parallel()

	var metadata aggregate.Metadata
	assert.Empty(t, metadata.CorrelationID())
	assert.Empty(t, metadata.CausationID())
	assert.Empty(t, aggregate.MetadataFromContext(aggregate.ContextWithMetadata(t.Context(), nil)))
}

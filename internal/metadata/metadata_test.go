package metadata_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/metadata"
)

func TestAllMetadataSurvives(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]map[string]string{
		"none":         nil,
		"texts":        {"key": "value", "empty": "", "ü": "日本"},
		"binary value": {"key": "\xff\x00"},
		"binary key":   {"\xff": "value"},
		"empty key":    {"": "value"},
		"nothing":      {"": ""},
		"long key":     {strings.Repeat("k", 1<<16): "value"},
		"both":         {"key": "value", "other": "\xff", "": "\xfe", "\xfd": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := map[string]types.AttributeValue{}
			metadata.Put(item, m)
			read, _, ok := metadata.Of(item)
			assert.True(t, ok)
			assert.Equal(t, m, read)
			text := maps.Clone(metadata.Text(m))
			if len(text) == 0 {
				text = nil
			}
			assert.Equal(t, m, metadata.Join(text, metadata.Binary(m)))
		})
	}
}

func TestTextsAreStoredInTheMapAlone(t *testing.T) {
	t.Parallel()
	item := map[string]types.AttributeValue{}
	metadata.Put(item, map[string]string{"key": "value"})
	assert.Equal(t, map[string]types.AttributeValue{
		"metadata": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "value"}}},
	}, item)
}

func TestMalformedAttributesAreNamed(t *testing.T) {
	t.Parallel()
	number, bytes := &types.AttributeValueMemberN{Value: "1"}, &types.AttributeValueMemberB{Value: []byte("x")}
	for wrong, item := range map[string]map[string]types.AttributeValue{
		"key":             {"metadata": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"key": number}}},
		"metadata_binary": {"metadata_binary": &types.AttributeValueMemberL{Value: []types.AttributeValue{bytes}}},
	} {
		_, named, ok := metadata.Of(item)
		assert.False(t, ok)
		assert.Equal(t, wrong, named)
	}
	_, named, ok := metadata.Of(map[string]types.AttributeValue{"metadata_binary": &types.AttributeValueMemberL{Value: []types.AttributeValue{bytes, number}}})
	assert.False(t, ok)
	assert.Equal(t, "metadata_binary", named)
}

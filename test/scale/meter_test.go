package scale

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
)

func TestAPartitionKeyOfAnyTypeIsShown(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a", keyText(&types.AttributeValueMemberS{Value: "a"}))
	assert.Equal(t, "7", keyText(&types.AttributeValueMemberN{Value: "7"}))
	assert.Equal(t, "b", keyText(&types.AttributeValueMemberB{Value: []byte("b")}))
	assert.Empty(t, keyText(nil))
}

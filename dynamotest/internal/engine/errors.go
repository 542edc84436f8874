package engine

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func notFound(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return &types.ResourceNotFoundException{Message: &message}
}

func inUse(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return &types.ResourceInUseException{Message: &message}
}

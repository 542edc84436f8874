package engine

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Streams are refused. Encryption and table class are stored and described, but have no effect.

func (c *constraints) class(class types.TableClass) {
	oneOf(c, "tableClass", class, types.TableClassStandard, types.TableClassStandardInfrequentAccess)
}

func (c *constraints) encryption(s *types.SSESpecification) {
	if s != nil {
		oneOf(c, "sSESpecification.sSEType", s.SSEType, types.SSETypeAes256, types.SSETypeKms)
	}
}

func (c *constraints) stream(s *types.StreamSpecification) {
	if s != nil {
		c.required("streamSpecification.streamEnabled", s.StreamEnabled != nil)
	}
}

func checkEncryption(s *types.SSESpecification) error {
	switch {
	case s == nil:
		return nil
	case s.SSEType == types.SSETypeAes256:
		// Source: API Reference, SSESpecification: "Server-side encryption type. The only supported
		// value is: KMS".
		return invalid("SSEType AES256 is not supported")
	case s.KMSMasterKeyId != nil && !aws.ToBool(s.Enabled):
		return invalid("KMSMasterKeyId cannot be specified when Enabled is false")
	}
	return nil
}

func copyOfEncryption(s *types.SSESpecification) *types.SSESpecification {
	if s == nil || !aws.ToBool(s.Enabled) {
		// AWS owns the key and returns nothing about it.
		return nil
	}
	copied := &types.SSESpecification{Enabled: aws.Bool(true), SSEType: types.SSETypeKms}
	if s.KMSMasterKeyId != nil {
		copied.KMSMasterKeyId = aws.String(*s.KMSMasterKeyId)
	}
	return copied
}

func describeEncryption(s *types.SSESpecification) *types.SSEDescription {
	if s == nil {
		return nil
	}
	key := aws.ToString(s.KMSMasterKeyId)
	switch {
	case key == "":
		key = kmsPrefix + "alias/aws/dynamodb"
	case strings.HasPrefix(key, "alias/"):
		key = kmsPrefix + key
	case !isARN(key):
		key = kmsPrefix + "key/" + key
	}
	return &types.SSEDescription{Status: types.SSEStatusEnabled, SSEType: types.SSETypeKms, KMSMasterKeyArn: &key}
}

const kmsPrefix = "arn:aws:kms:" + region + ":" + account + ":"

package dynamotest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// maxRequestSize is the largest size of a body, also after it is decompressed.
const maxRequestSize = 16 << 20

// decompress returns the JSON in the body of a request. A client may compress it. As in DynamoDB,
// an error in the compression is an InternalServerError.
func decompress(header http.Header, body []byte) ([]byte, error) {
	if len(body) > maxRequestSize {
		return nil, apierror.TooLarge("the request is larger than %d MB", maxRequestSize>>20)
	}
	var from io.Reader
	var err error
	encoding := header.Get("Content-Encoding")
	switch encoding {
	case "":
		return body, nil
	case "gzip":
		from, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		from, err = zlib.NewReader(bytes.NewReader(body))
	default:
		err = errors.New("only gzip and deflate are supported")
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(from, maxRequestSize+1))
	}
	if err == nil && len(body) > maxRequestSize {
		err = fmt.Errorf("it has more than %d MB", maxRequestSize>>20)
	}
	if err != nil {
		message := fmt.Sprintf("the body with Content-Encoding %q cannot be decompressed: %v", encoding, err)
		return nil, &types.InternalServerError{Message: aws.String(message)}
	}
	return body, nil
}

package history

import "encoding/base64"

// MakePageToken returns a token of any content, as anyone can make one.
func MakePageToken(consumerID string, f Filter, content string) string {
	return base64.RawURLEncoding.EncodeToString(append(checksum(consumerID, f, []byte(content)), content...))
}

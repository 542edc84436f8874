package history

import "encoding/base64"

// MakePageToken returns a token with any content, as a client could make one.
func MakePageToken(consumerID string, f Filter, content string) string {
	return base64.RawURLEncoding.EncodeToString(append(checksum(consumerID, f, []byte(content)), content...))
}

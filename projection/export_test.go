package projection

import "encoding/base64"

// MakePageToken returns a page token with any content, as a client could make one.
func (r Reader[T]) MakePageToken(q Query, content string) string {
	r, _ = r.checked()
	in, err := q.request(r.Table)
	if err != nil {
		panic(err)
	}
	sum := newPageTokens(r.Name, r.Table, q, in).checksum([]byte(content))
	return base64.RawURLEncoding.EncodeToString(append(sum, content...))
}

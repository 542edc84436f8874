package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// sealer signs tokens, each for one purpose: the place where the next page begins, the report of an
// action, the visitor to whom a form belongs.
type sealer struct{ key []byte }

func newSealer(secret []byte) sealer {
	if len(secret) == 0 {
		secret = make([]byte, leastSecret)
		_, _ = rand.Read(secret) // never fails
	}
	return sealer{secret}
}

// seal returns a signed token of a value. The value is not encrypted.
func (s sealer) seal(purpose string, value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("console: seal %T: %v", value, err)) // not possible for our values
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode(data) + "." + encode(s.sign(purpose, data))
}

// open verifies a token that seal has made for the same purpose, and decodes its value.
func (s sealer) open(purpose, token string, value any) error {
	text, signature, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		var given []byte
		if given, err = base64.RawURLEncoding.DecodeString(signature); err == nil && hmac.Equal(given, s.sign(purpose, data)) {
			return json.Unmarshal(data, value)
		}
	}
	return &requestError{"The link does not belong to this console, or it was made before the console was restarted. Open the page again."}
}

func (s sealer) sign(purpose string, data []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%s\n", purpose)
	_, _ = mac.Write(data)
	return mac.Sum(nil)
}

package web_test

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
)

var picture = flag.String("picture", "", "file for a picture of the page, as the README shows it")

func TestPicture(t *testing.T) {
	if *picture == "" {
		t.Skip("left to make pictures")
	}
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	half := browsertest.Window(660, 1040, 1)
	ada, ben := chromium.User(t, "Ada", half, browsertest.Still), chromium.User(t, "Ben", half, browsertest.Still, browsertest.Dark)
	path := openWith(ada, s.URL(), "Sprint 12", "Log in with a passkey")
	enter(ada, s.URL()+path, "Ada")
	enter(ben, s.URL()+path, "Ben")
	for name, card := range map[string]string{"Cleo": "5", "Dora": "8"} {
		u := chromium.User(t, name)
		enter(u, s.URL()+path, name)
		u.Press(card)
	}
	ada.Press("5")
	ada.Sees("3 of 4 have picked")
	top(ada)
	thinking := ada.Picture()
	ben.Press("13")
	ben.Sees("Average")
	top(ben)

	require.NoError(t, os.WriteFile(*picture, beside(t, thinking, ben.Picture()), 0o644)) //nolint:gosec // for everybody
}

func top(u *browsertest.User) { browsertest.Evaluate[any](u, "scrollTo(0, 0)") }

// beside joins pictures side by side.
func beside(t *testing.T, pictures ...[]byte) []byte {
	t.Helper()
	whole := image.NewRGBA(image.Rectangle{})
	for _, data := range pictures {
		part, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		next := image.NewRGBA(image.Rect(0, 0, whole.Rect.Dx()+part.Bounds().Dx(), max(whole.Rect.Dy(), part.Bounds().Dy())))
		draw.Draw(next, whole.Rect, whole, image.Point{}, draw.Src)
		draw.Draw(next, part.Bounds().Add(image.Pt(whole.Rect.Dx(), 0)), part, image.Point{}, draw.Src)
		whole = next
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, whole))
	return out.Bytes()
}

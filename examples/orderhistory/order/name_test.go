package order_test

import (
	"testing"

	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

func TestANameThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	const blank, utf8 = "it must not be blank", "it must be valid UTF-8"
	unseen := func(code string) string {
		return "it has an invisible character (" + code + "), remove it or type the name again"
	}
	for name, reason := range map[string]string{
		"":                 blank,
		" \u00a0\u3000":    blank,
		"\u0301":           blank,
		"\u200b":           unseen("U+200B"),
		"Naan\u200b":       unseen("U+200B"),
		"Naan\ufeff":       unseen("U+FEFF"),
		"Na\u00adan":       unseen("U+00AD"),
		"Naan\n":           unseen("U+000A"),
		"Naan\x00":         unseen("U+0000"),
		"Naan\u2028":       unseen("U+2028"),
		"\u202eNaan":       unseen("U+202E"),
		"\u2067Naan\u2069": unseen("U+2067"),
		"Naan\u200f":       unseen("U+200F"),
		"\u061cNaan":       unseen("U+061C"),
		"\u3164":           unseen("U+3164"),
		"\u2800":           unseen("U+2800"),
		"\u200dNaan":       unseen("U+200D"),
		"Naan\u200d":       unseen("U+200D"),
		"Naan \u200c Rice": unseen("U+200C"),
		"Na\u200d\u200dan": unseen("U+200D"),
		"❤\ufe0f\ufe0f":    unseen("U+FE0F"),
		"\ufe0f":           unseen("U+FE0F"),
		"Naan\U000e0041":   unseen("U+E0041"),
		"Naan\ue000":       unseen("U+E000"),
		"Naan \xff":        utf8,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := details
			d.Restaurant = name
			given(t).When(order.Create(d)).ThenError(order.NameError{Of: "restaurant", Reason: reason})
			d = details
			d.Lines = []order.Line{curry[0], {Name: name, Quantity: 1, PriceCents: 100}}
			given(t).When(order.Create(d)).ThenError(order.NameError{Of: "dish 2, name", Reason: reason})
			given(t, created).When(order.Revise(d.Lines)).ThenError(order.NameError{Of: "dish 2, name", Reason: reason})
		})
	}
}

func TestANameOfAnyScriptIsTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"7", "Chez Vin", "Crème Brûlée", "Cre\u0300me", "שווארמה ירושלים", "مطعم دمشق", "پیش\u200cغذا", "ක්\u200dරීම්", "拉麵", "ராமேன்",
		"Ramen 拉麵 (רָאמֶן)", "👩\u200d🍳", "❤\ufe0f", "👨\u200d❤\ufe0f\u200d👨", "🍜",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := details
			d.Restaurant, d.Lines = name, []order.Line{{Name: name, Quantity: 1, PriceCents: 100}}
			given(t).When(order.Create(d)).Then(order.Created{Details: d})
		})
	}
}

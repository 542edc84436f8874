package journal

import (
	"fmt"
	"strings"
)

// layouts lists all layouts. [Open] tries them in this order if config names none.
var layouts = []kind{
	{name: Classic, layout: newClassic, reserved: classicNames},
	{name: Packed, layout: newPacked, check: checkPacked},
}

// checkLayout returns an error if the layout is unknown, or if the other settings do not suit it.
func checkLayout(s *settings) error {
	constants := make([]string, len(layouts))
	for i, kind := range layouts {
		if kind.name == s.Layout {
			if kind.check == nil {
				return nil
			}
			return kind.check(&s.tableSettings)
		}
		constants[i] = "journal." + strings.ToUpper(string(kind.name[:1])) + string(kind.name[1:])
	}
	return &ConfigError{Field: "Layout", Reason: fmt.Sprintf("is %q: use %s", string(s.Layout), strings.Join(constants, " or "))}
}

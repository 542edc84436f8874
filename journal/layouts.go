package journal

import (
	"fmt"
	"strings"
)

// layouts lists all layouts. [Open] tries them in this order if config names none.
var layouts = []Kind{
	{Name: Classic, Layout: NewClassic, Reserved: ClassicNames},
	{Name: Packed, Layout: NewPacked, Check: CheckPacked},
}

// checkLayout returns an error if the layout is unknown, or if the other settings do not suit it.
func checkLayout(s *EngineSettings) error {
	constants := make([]string, len(layouts))
	for i, kind := range layouts {
		if kind.Name == s.Layout {
			if kind.Check == nil {
				return nil
			}
			return kind.Check(&s.TableSettings)
		}
		constants[i] = "journal." + strings.ToUpper(string(kind.Name[:1])) + string(kind.Name[1:])
	}
	return &ConfigError{Field: "Layout", Reason: fmt.Sprintf("is %q: use %s", string(s.Layout), strings.Join(constants, " or "))}
}

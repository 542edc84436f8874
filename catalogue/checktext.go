package catalogue

import (
	"regexp"
	"strconv"
	"strings"
)

var versionEnd = regexp.MustCompile(`^(.*v)([0-9]+)$`)

// nextVersion returns the name of the next version of an event type.
func nextVersion(name string) string {
	if match := versionEnd.FindStringSubmatch(name); match != nil {
		if n, err := strconv.Atoi(match[2]); err == nil {
			return match[1] + strconv.Itoa(n+1)
		}
	}
	return name + ".v2"
}

// bareTypeName returns the name of a Go type without its package.
func bareTypeName(goType string) string { return goType[strings.LastIndexByte(goType, '.')+1:] }

// oldTypeName proposes a name for the Go type of stored events.
func oldTypeName(old *entry) string {
	name := bareTypeName(old.GoType)
	if name == "" {
		return "oldEvent"
	}
	version := "Old"
	if match := versionEnd.FindStringSubmatch(old.Event); match != nil {
		version = "V" + match[2]
	}
	return strings.ToLower(name[:1]) + name[1:] + version
}

func list(names []string) string {
	if len(names) == 0 {
		return "no known event type"
	}
	return strings.Join(names, ", ")
}

package catalogue

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// definitionNames chooses a name for each type that schemas refer to: its Go name. Types with the
// same name have also the name of their package, or a number. So the name of a type depends on the
// set of types, and not on their order, except for local types of functions.
func definitionNames(keys []structKey) map[structKey]string {
	names := map[structKey]string{}
	taken := map[string]bool{}
	assign := func(keys []structKey, name func(structKey) string) (rest []structKey) {
		groups := map[string][]structKey{}
		for _, key := range keys {
			groups[name(key)] = append(groups[name(key)], key)
		}
		for _, key := range keys {
			if of := groups[name(key)]; len(of) > 1 || taken[name(key)] {
				rest = append(rest, key)
				continue
			}
			names[key] = name(key)
			taken[name(key)] = true
		}
		return rest
	}
	rest := assign(keys, func(k structKey) string { return goName(k.t) })
	rest = assign(rest, func(k structKey) string { return plainName(path.Base(k.t.PkgPath()) + "." + goName(k.t)) })
	rest = assign(rest, func(k structKey) string { return plainName(k.t.PkgPath() + "." + goName(k.t)) })
	slices.SortStableFunc(rest, func(a, b structKey) int { return strings.Compare(fullName(a.t), fullName(b.t)) })
	for _, key := range rest {
		base := plainName(key.t.PkgPath() + "." + goName(key.t))
		for n := 2; ; n++ {
			if name := fmt.Sprintf("%s.%d", base, n); !taken[name] {
				names[key], taken[name] = name, true
				break
			}
		}
	}
	return names
}

var (
	packagePath = regexp.MustCompile(`[^\[\],]*/`)
	notPlain    = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// goName returns the name of a Go type without its package. The type arguments of a generic type
// keep the last part of their packages.
func goName(t reflect.Type) string { return plainName(packagePath.ReplaceAllString(t.Name(), "")) }

func fullName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// plainName replaces what cannot be part of a key of AsyncAPI or of a JSON Pointer.
func plainName(name string) string { return strings.Trim(notPlain.ReplaceAllString(name, "_"), "_") }

// uniqueNames returns a plain name for each name. They differ also if letters of both cases are
// equal, as on some file systems.
func uniqueNames(names []string, plain func(string) string) map[string]string {
	count := map[string]int{}
	for _, name := range names {
		count[strings.ToLower(plain(name))]++
	}
	unique := map[string]string{}
	for _, name := range names {
		unique[name] = plain(name)
		if count[strings.ToLower(plain(name))] > 1 {
			sum := sha256.Sum256([]byte(name))
			unique[name] += "-" + hex.EncodeToString(sum[:4])
		}
	}
	return unique
}

// fileName returns the name of a file or folder for any text.
func fileName(name string) string {
	name = url.PathEscape(name)
	for _, char := range `:*"|<>?$&+=@;,` {
		name = strings.ReplaceAll(name, string(char), fmt.Sprintf("%%%02X", char))
	}
	if strings.Trim(name, ".") == "" {
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	if len(name) > mostFileName {
		sum := sha256.Sum256([]byte(name))
		name = name[:mostFileName-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return name
}

// mostFileName leaves room for an extension and the mark of a name that is not unique.
const mostFileName = 200

// typeName returns the name of a Go type for readers.
func typeName(t reflect.Type) string {
	if t == nil {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(packagePath.ReplaceAllString(t.String(), ""), t.String())
}

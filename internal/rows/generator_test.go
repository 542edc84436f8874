package rows_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator draws random replies to queries in the format of DynamoDB, and records what it has
// drawn.
type generator struct {
	random *rand.Rand
	seen   map[string]bool
}

func newGenerator(seed uint64, seen map[string]bool) *generator {
	if seen == nil {
		seen = map[string]bool{}
	}
	return &generator{rand.New(rand.NewPCG(seed, 1)), seen}
}

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func (g *generator) reply() string {
	var members []string
	if g.chance(95) {
		var items []string
		for range g.random.IntN(6) {
			items = append(items, g.item())
		}
		if len(items) == 0 {
			g.seen["empty page"] = true
		}
		members = append(members, `"Items":[`+strings.Join(items, ",")+`]`)
	} else {
		g.seen["no items"] = true
	}
	if g.chance(40) {
		g.seen["last key"] = true
		members = append(members, `"LastEvaluatedKey":`+g.object(map[string]string{
			"pkey": g.value("S", 0), "skey": g.value("S", 0), "occurred_at": g.value("N", 0), "seq_nr": g.value("N", 0),
		}))
	}
	members = append(members, `"Count":5`, `"ScannedCount":7`)
	if g.chance(30) {
		members = append(members, `"ConsumedCapacity":{"TableName":"journal","CapacityUnits":0.5}`)
	}
	if g.chance(10) {
		// The SDK does not know this member.
		members = append(members, `"Later":{"a":[1,{"b":null}]}`)
	}
	g.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// batch draws a random reply to a BatchGetItem.
func (g *generator) batch() string {
	var items []string
	for range g.random.IntN(6) {
		items = append(items, g.item())
	}
	members := []string{`"Responses":{"journal":[` + strings.Join(items, ",") + `]}`}
	unprocessed := `"UnprocessedKeys":{}`
	if g.chance(50) {
		unprocessed = `"UnprocessedKeys":{"journal":{"ConsistentRead":true,"Keys":[` +
			g.object(map[string]string{"pkey": g.value("S", 0), "skey": g.value("N", 0)}) + `]}}`
	}
	members = append(members, unprocessed, `"ConsumedCapacity":[{"TableName":"journal","CapacityUnits":0.5}]`)
	g.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// kinds are the types that the attributes of an event have.
var kinds = map[string]string{
	"pkey": "S", "skey": "S", "aid": "S", "seq_nr": "N", "occurred_at": "N", "event_id": "S", "event_type": "S", "commit_id": "S",
	"encoding": "S", "payload": "B", "metadata": "M",
}

var all = []string{"S", "N", "B", "M", "L", "SS", "NS", "BS", "BOOL", "NULL"}

func (g *generator) item() string {
	attributes := map[string]string{}
	for name, kind := range kinds {
		switch {
		case g.chance(15): // missing
		case g.chance(10):
			attributes[name] = g.value(all[g.random.IntN(len(all))], 0)
		default:
			attributes[name] = g.value(kind, 0)
		}
	}
	for range g.random.IntN(3) {
		attributes[g.text()] = g.value(all[g.random.IntN(len(all))], 0)
	}
	return g.object(attributes)
}

// object writes members in random order, sometimes with space between them.
func (g *generator) object(members map[string]string) string {
	names := make([]string, 0, len(members))
	for name, value := range members {
		names = append(names, quote(name)+":"+value)
	}
	g.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	separator := ","
	if g.chance(10) {
		separator = " ,\n "
	}
	return "{" + strings.Join(names, separator) + "}"
}

func (g *generator) value(kind string, depth int) string {
	g.seen[kind] = true
	var value string
	switch kind {
	case "S":
		value = quote(g.text())
	case "N":
		value = quote(g.number())
	case "B":
		value = quote(g.binary())
	case "BOOL":
		value = fmt.Sprint(g.chance(50))
	case "NULL":
		value = "true"
	case "SS":
		value = g.list(func() string { return quote(g.text()) })
	case "NS":
		value = g.list(func() string { return quote(g.number()) })
	case "BS":
		value = g.list(func() string { return quote(g.binary()) })
	case "L":
		value = g.list(func() string { return g.nested(depth) })
	case "M":
		members := map[string]string{}
		for range g.random.IntN(4) {
			members[g.text()] = g.nested(depth)
		}
		value = g.object(members)
	}
	return `{"` + kind + `":` + value + `}`
}

func (g *generator) nested(depth int) string {
	if depth > 2 || g.chance(60) {
		return g.value("S", depth)
	}
	return g.value(all[g.random.IntN(len(all))], depth+1)
}

func (g *generator) list(element func() string) string {
	var elements []string
	for range g.random.IntN(4) {
		elements = append(elements, element())
	}
	return "[" + strings.Join(elements, ",") + "]"
}

func (g *generator) text() string {
	return []string{
		"", "a", "account-42", "pkey", "ümläut", "日本語", "\U0001F600", `quote " and \ backslash`, "line\nbreak\ttab", "\u0000\u001f", "</script>&",
		strings.Repeat("long ", 200),
	}[g.random.IntN(12)]
}

func (g *generator) number() string {
	return []string{
		"0", "1", "-1", "42", "1700000000000", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "0.5", "1E+125",
		"-1.5e-130", "99999999999999999999999999999999999999",
	}[g.random.IntN(12)]
}

func (g *generator) binary() string {
	bytes := make([]byte, []int{0, 1, 2, 3, 100, 5_000}[g.random.IntN(6)])
	for i := range bytes {
		bytes[i] = byte(g.random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(bytes)
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always marshals
	return string(quoted)
}

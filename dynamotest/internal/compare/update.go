package compare

import (
	"fmt"
	"strconv"
	"strings"
)

// update returns an update expression.
func (e *expression) update() string {
	used := map[string]bool{}
	root := func(kind string) string {
		if e.chance(30) {
			kind = pick(e.dice, kinds...)
		}
		name := pick(e.dice, namesOf(kind)...)
		for range 20 { // two actions must not change the same place
			if !used[name] {
				break
			}
			name = pick(e.dice, append(namesOf(kind), attributeNames...)...)
		}
		used[name] = true
		return e.name(name)
	}

	var sections []string
	e.removes = true
	section := func(keyword string, action func() string) {
		e.removes = e.removes && (keyword == "REMOVE" || keyword == "DELETE")
		actions := []string{action()}
		for e.chance(300) {
			actions = append(actions, action())
		}
		sections = append(sections, e.keyword(keyword)+" "+strings.Join(actions, ", "))
	}
	switch weighted(e.dice, 55, 12, 12, 8, 13) {
	case 0:
		section("SET", func() string { return e.set(root) })
	case 1:
		section("REMOVE", func() string { return e.remove(root) })
	case 2:
		section("ADD", func() string { return e.add(root) })
	case 3:
		section("DELETE", func() string { return e.take(root) })
	case 4:
		order := some(e.dice, 2+e.IntN(3), []string{"SET", "REMOVE", "ADD", "DELETE"})
		if e.chance(20) {
			order = append(order, order[0])
		}
		for _, keyword := range order {
			action := map[string]func(func(string) string) string{"SET": e.set, "REMOVE": e.remove, "ADD": e.add, "DELETE": e.take}[keyword]
			section(keyword, func() string { return action(root) })
		}
	}
	return strings.Join(sections, " ")
}

func (e *expression) set(root func(string) string) string {
	switch weighted(e.dice, 34, 20, 12, 8, 6, 8, 4, 1) {
	case 0:
		kind := pick(e.dice, kinds...)
		return root(kind) + " = " + e.operandOfSet(kind)
	case 1:
		path := root("N")
		if e.chance(300) {
			return path + " = " + e.operandOfSet("N") + pick(e.dice, " + ", " - ") + e.operandOfSet("N")
		}
		return fmt.Sprintf("%s = if_not_exists(%s, %s)%s%s", path, path, e.bound("N"), pick(e.dice, " + ", " - "), e.bound("N"))
	case 2:
		path := root("L")
		switch e.IntN(4) {
		case 0:
			return fmt.Sprintf("%s = list_append(%s, %s)", path, path, e.bound("L"))
		case 1:
			return fmt.Sprintf("%s = list_append(%s, %s)", path, e.operandOfSet("L"), e.operandOfSet("L"))
		}
		return fmt.Sprintf("%s = list_append(if_not_exists(%s, %s), %s)", path, path, e.bound("L"), e.bound("L"))
	case 3:
		path := root("L")
		out := fmt.Sprintf("%s[%d] = %s", path, e.IntN(9), e.bound("N"))
		if e.chance(300) {
			out += fmt.Sprintf(", %s[%d] = %s", path, e.IntN(9), e.bound("S"))
		}
		return out
	case 4:
		return root("M") + "." + e.name(pick(e.dice, attributeNames...)) + " = " + e.operandOfSet(pick(e.dice, kinds...))
	case 5:
		kind := pick(e.dice, "S", "N", "SS", "M")
		return fmt.Sprintf("%s = if_not_exists(%s, %s)", root(kind), e.path(kind), e.operandOfSet(kind))
	case 6:
		kind := pick(e.dice, kinds...)
		return e.path(kind) + " = " + e.operandOfSet(kind)
	}
	return e.name(pick(e.dice, e.table.keys()...).name) + " = " + e.bound("S")
}

func (e *expression) operandOfSet(kind string) string {
	switch {
	case e.chance(820):
		return e.bound(kind)
	case e.chance(300):
		return e.path(kind)
	case e.chance(10):
		return e.size()
	}
	return "if_not_exists(" + e.path(kind) + ", " + e.bound(kind) + ")"
}

func (e *expression) remove(root func(string) string) string {
	switch weighted(e.dice, 60, 20, 10, 10) {
	case 1:
		path := root("L")
		out := path + "[" + strconv.Itoa(e.IntN(5)) + "]"
		if e.chance(300) {
			out += ", " + path + "[" + strconv.Itoa(e.IntN(5)) + "]"
		}
		return out
	case 2:
		return root("M") + "." + e.name(pick(e.dice, attributeNames...))
	case 3:
		return e.path(pick(e.dice, kinds...))
	}
	return root(pick(e.dice, kinds...))
}

func (e *expression) add(root func(string) string) string {
	kind := pick(e.dice, "N", "N", "SS", "NS", "BS")
	if e.chance(60) {
		return e.path(kind) + " " + e.bound(kind)
	}
	return root(kind) + " " + e.bound(kind)
}

func (e *expression) take(root func(string) string) string {
	kind := pick(e.dice, "SS", "NS", "BS")
	if e.chance(60) {
		return e.path(kind) + " " + e.bound(kind)
	}
	return root(kind) + " " + e.bound(kind)
}

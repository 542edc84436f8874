package main

import "strings"

// table returns a Markdown table with a row for each operation and a column for each contender. An
// empty cell means that the store cannot do it. A row of empty cells is left out.
func table(contenders []contender, cell func(row, column int) string) string {
	var b strings.Builder
	line := func(first string, column func(i int) string) {
		b.WriteString("| " + first)
		for i := range contenders {
			b.WriteString(" | " + column(i))
		}
		b.WriteString(" |\n")
	}
	line("operation", func(i int) string { return contenders[i].name })
	b.WriteString(strings.Repeat("|---", 1+len(contenders)) + "|\n")
	for row, o := range operations {
		if isEmpty(len(contenders), row, cell) {
			continue
		}
		line(o.name, func(column int) string {
			if text := cell(row, column); text != "" {
				return text
			}
			return "-"
		})
	}
	return b.String()
}

func isEmpty(columns, row int, cell func(row, column int) string) bool {
	for column := range columns {
		if cell(row, column) != "" {
			return false
		}
	}
	return true
}

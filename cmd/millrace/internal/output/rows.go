package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/internal/printable"
)

// blockRows is the number of rows after which a table is printed, so that a long table begins at
// once.
const blockRows = 100

// Column is a column of a table.
type Column[T any] struct {
	Name string
	Cell func(T) string
}

// Rows prints values of one kind, each on a line. It is not safe for concurrent use.
type Rows[T any] struct {
	out     io.Writer
	encoder *json.Encoder // nil for a table
	columns []Column[T]
	widths  []int
	block   [][]string
	begun   bool
}

// NewRows returns Rows that print a table, or with asJSON each value as a JSON object on a line.
func NewRows[T any](out io.Writer, asJSON bool, columns ...Column[T]) *Rows[T] {
	r := &Rows[T]{out: out, columns: columns, widths: make([]int, len(columns))}
	if asJSON {
		r.encoder = NewEncoder(out)
	}
	return r
}

// NewEncoder returns an encoder that prints each value as one line of JSON. It escapes characters
// that are not printable.
func NewEncoder(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(escaping{out})
	encoder.SetEscapeHTML(false)
	return encoder
}

// Print prints a value. It prints JSON at once, and a row of a table with its block of rows.
func (r *Rows[T]) Print(value T) error {
	if r.encoder != nil {
		return r.encoder.Encode(value)
	}
	if !r.begun {
		r.begun = true
		header := make([]string, len(r.columns))
		for i, c := range r.columns {
			header[i] = c.Name
		}
		r.add(header)
	}
	row := make([]string, len(r.columns))
	for i, c := range r.columns {
		row[i] = printable.Text(c.Cell(value))
	}
	r.add(row)
	if len(r.block) > blockRows {
		return r.Flush()
	}
	return nil
}

func (r *Rows[T]) add(row []string) {
	r.block = append(r.block, row)
	for i, cell := range row {
		r.widths[i] = max(r.widths[i], utf8.RuneCountInString(cell))
	}
}

// Flush prints the rows of the block. A column never becomes narrower, so that blocks look like one
// table.
func (r *Rows[T]) Flush() error {
	var b strings.Builder
	for _, row := range r.block {
		writeRow(&b, row, r.widths)
	}
	r.block = r.block[:0]
	_, err := io.WriteString(r.out, b.String())
	return err
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	var line strings.Builder
	for i, cell := range row {
		fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// Field is a name with its value.
type Field struct{ Name, Value string }

// Fields prints fields, each on a line. It leaves out fields without a value.
func Fields(out io.Writer, fields ...Field) error {
	widths := []int{0, 0}
	for _, f := range fields {
		widths[0] = max(widths[0], utf8.RuneCountInString(f.Name))
	}
	var b strings.Builder
	for _, f := range fields {
		if f.Value != "" {
			writeRow(&b, []string{f.Name, printable.Text(f.Value)}, widths)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

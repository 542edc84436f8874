package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/table"
)

// Growth is a number of partitions, and the time in milliseconds from which writers use it.
type Growth struct {
	Parts int
	Since int64
}

// GrowthsValue encodes growths as the descriptor stores them.
func GrowthsValue(growths []Growth) types.AttributeValue {
	texts := make([]string, len(growths))
	for i, g := range growths {
		texts[i] = strconv.Itoa(g.Parts) + "@" + strconv.FormatInt(g.Since, 10)
	}
	return table.StringValue(strings.Join(texts, " "))
}

// GrowthsOf decodes the growths in the descriptor. It returns false if it cannot decode them.
func GrowthsOf(it table.Item) ([]Growth, bool) {
	text, there := table.StringOf(it[AttrGrowths])
	if !there {
		return nil, it[AttrGrowths] == nil && it != nil
	}
	var growths []Growth
	for _, field := range strings.Fields(text) {
		parts, since, _ := strings.Cut(field, "@")
		n, err := strconv.Atoi(parts)
		at, err2 := strconv.ParseInt(since, 10, 64)
		if err != nil || err2 != nil || n < 1 || n > table.MaxShards {
			return nil, false
		}
		growths = append(growths, Growth{n, at})
	}
	return growths, true
}

// GrowTail implements Journal.GrowTail.
func (j *Engine) GrowTail(ctx context.Context, partitions int) (since time.Time, err error) {
	since, err = j.Layout.Grow(ctx, partitions)
	if err != nil {
		return time.Time{}, fmt.Errorf("grow the tail: %w", err)
	}
	return since, nil
}

// TailPartitions implements Journal.TailPartitions.
func (j *Engine) TailPartitions(ctx context.Context) (int, error) {
	factor, err := j.Layout.TailFactor(ctx)
	return j.Config.Shards * factor, err
}

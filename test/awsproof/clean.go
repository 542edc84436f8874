package awsproof

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const prefixBegin = "millrace-proof-"

var prefixForm = regexp.MustCompile(`^` + prefixBegin + `[a-z2-7]{12}$`)

// ErrPrefix reports a prefix that no run can have.
var ErrPrefix = errors.New("not a prefix of aws-proof")

func newPrefix() string { return prefixBegin + strings.ToLower(rand.Text()[:12]) }

// Limits of [Clean]. A table that is being created or restored cannot be deleted yet.
const (
	leastPause = 250 * time.Millisecond
	mostPause  = 5 * time.Second
	cleanLimit = 30 * time.Minute
)

// Clean deletes the tables with a prefix, and prints their names. It repeats requests that fail,
// until no table is left, but not longer than half an hour.
//
// Errors: [ErrPrefix].
func Clean(ctx context.Context, client *dynamodb.Client, prefix string, out io.Writer) error {
	if !prefixForm.MatchString(prefix) {
		return fmt.Errorf("%q: %w: these begin with %q and have 12 letters and digits more", prefix, ErrPrefix, prefixBegin)
	}
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	printed := map[string]bool{}
	for absent, pause := 0, leastPause; ; pause = min(2*pause, mostPause) {
		left, err := deleteTables(ctx, client, prefix+"-", func(table string) {
			if !printed[table] {
				printed[table] = true
				_, _ = fmt.Fprintln(out, "delete", table)
			}
		})
		if absent++; len(left) > 0 || err != nil {
			absent = 0
		}
		// A list may lack a table that was created a moment ago.
		if absent == 2 {
			_, _ = fmt.Fprintf(out, "%d tables with the prefix %s were deleted\n", len(printed), prefix)
			return nil
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("tables with the prefix %s may be left %v; try again: make aws-proof PROOF=\"clean %s\": %w", prefix, left, prefix, errors.Join(err, ctx.Err()))
		}
	}
}

// deleteTables asks for the deletion of all tables that have the prefix, and returns their names.
func deleteTables(ctx context.Context, client *dynamodb.Client, prefix string, each func(table string)) (left []string, err error) {
	for pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, listErr := pages.NextPage(ctx)
		if listErr != nil {
			return left, errors.Join(err, listErr)
		}
		for _, table := range page.TableNames {
			if !strings.HasPrefix(table, prefix) {
				continue
			}
			each(table)
			left = append(left, table)
			_, deleteErr := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
			var missing *types.ResourceNotFoundException
			if !errors.As(deleteErr, &missing) {
				err = errors.Join(err, deleteErr)
			}
		}
	}
	return left, err
}

// sleep waits, and reports whether the context still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

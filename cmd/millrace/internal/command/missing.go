package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// aboutMissing returns what to do about a missing table. Usually the prefix is wrong, so it names
// the prefixes that exist. If the prefix is right, or none exists, it returns the advice.
func (a *app) aboutMissing(ctx context.Context, advice string) string {
	prefixes := a.prefixes(ctx)
	if len(prefixes) == 0 {
		text := fmt.Sprintf("This is %s. If the application has a prefix, set --prefix or $%s. Flags that end with -table set whole names. %s", a.place, prefixEnv, advice)
		if a.place.IsEmulator() {
			text += "\n" + a.target.OwnTables()
		}
		return text
	}
	if slices.Contains(prefixes, a.tables.prefix) {
		return fmt.Sprintf("This is %s. %s", a.place, advice)
	}
	const most = 10
	var quoted []string
	for _, prefix := range prefixes[:min(len(prefixes), most)] {
		if prefix == "" {
			quoted = append(quoted, `"" (no prefix)`)
		} else {
			quoted = append(quoted, strconv.Quote(prefix))
		}
	}
	if len(prefixes) > most {
		quoted = append(quoted, "and others")
	}
	return fmt.Sprintf("Prefixes of journals in %s: %s. Set --prefix or $%s, or whole names with the flags that end with -table.", a.place, strings.Join(quoted, ", "), prefixEnv)
}

const (
	listPatience = 5 * time.Second
	listPages    = 10 // of 100 tables
)

// prefixes returns the prefixes with which there is a journal table and a checkpoint table. It
// returns none if the tables cannot be listed, for which the command needs no permission otherwise.
func (a *app) prefixes(ctx context.Context) (found []string) {
	client, ok := a.client.(dynamodb.ListTablesAPIClient)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	names := map[string]bool{}
	pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{})
	for range listPages {
		if !pages.HasMorePages() {
			break
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			break
		}
		for _, name := range page.TableNames {
			names[name] = true
		}
	}
	for name := range names {
		if prefix, is := strings.CutSuffix(name, "journal"); is && names[prefix+"checkpoint"] {
			found = append(found, prefix)
		}
	}
	slices.Sort(found)
	return found
}

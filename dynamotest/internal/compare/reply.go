package compare

import (
	"errors"
	"math/big"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Code returns the type of the reply's error, and "" if there is none.
func (r Reply) Code() string {
	var api smithy.APIError
	if errors.As(r.Err, &api) {
		return api.ErrorCode()
	}
	if r.Err != nil {
		return "not of the API"
	}
	return ""
}

// Message returns the message of the reply's error.
func (r Reply) Message() string {
	var api smithy.APIError
	switch {
	case errors.As(r.Err, &api):
		return api.ErrorMessage()
	case r.Err != nil:
		return r.Err.Error()
	}
	return ""
}

// String returns the reply as text similar to JSON.
func (r Reply) String() string {
	text := ""
	for _, out := range r.Outputs {
		text += textOf(out) + " "
	}
	if r.Err == nil {
		return text
	}
	text += r.Code() + ": " + r.Message()
	if items := errorTree(r.Err); items != nil {
		text += " " + textOfTree(items)
	}
	return text
}

// normal returns the part of the reply that must be equal on both sides.
func (o Operation) normal(r Reply, big bool) tree {
	out := map[string]tree{}
	if r.Err != nil {
		out["error"] = r.Code()
		out["reasons"] = errorTree(r.Err)
		if r.Code() == "not of the API" {
			out["error"] = r.Err.Error()
		}
	}
	switch in := o.Input.(type) {
	case *dynamodb.QueryInput:
		if in.IndexName == nil {
			out["pages"] = pages(r.Outputs)
		} else if r.Err == nil {
			o.normalIndexQuery(out, r.Outputs, big)
		}
	case *dynamodb.ScanInput:
		if r.Err == nil {
			o.normalScan(out, r.Outputs, big)
		}
	case *dynamodb.BatchGetItemInput:
		for _, output := range r.Outputs {
			page := comparableTree(output).(map[string]tree)
			if tables, ok := page["Responses"].(map[string]tree); ok {
				for _, items := range tables {
					sortTrees(items.([]tree))
				}
			}
			out["reply"] = page
		}
	default:
		for _, output := range r.Outputs {
			out["reply"] = comparableTree(output)
		}
	}
	return out
}

func pages(outputs []any) []tree {
	var out []tree
	for _, page := range outputs {
		out = append(out, comparableTree(page))
	}
	return out
}

// normalIndexQuery returns the items in the order of their sort keys, with equal keys in any order,
// and the sizes of pages.
func (o Operation) normalIndexQuery(out map[string]tree, outputs []any, big bool) {
	var items []types.AttributeValue
	var all, scanned []tree
	count := 0
	for _, page := range outputs {
		page := page.(*dynamodb.QueryOutput)
		for _, item := range page.Items {
			items = append(items, item[o.Sort])
			all = append(all, comparableTree(item))
		}
		count += int(page.Count)
		scanned = append(scanned, strconv.Itoa(int(page.ScannedCount)))
	}
	var keys []tree
	for _, key := range items {
		keys = append(keys, canonicalKey(key))
	}
	sortTrees(all)
	out["items"], out["sort keys"], out["count"] = all, keys, strconv.Itoa(count)
	if !big {
		out["scanned"] = scanned
	}
}

// normalScan returns the items in any order, and the sizes of pages, unless these depend on the
// size of items or a segment ends.
func (o Operation) normalScan(out map[string]tree, outputs []any, big bool) {
	var all, scanned []tree
	count, total := 0, 0
	for _, page := range outputs {
		page := page.(*dynamodb.ScanOutput)
		for _, item := range page.Items {
			all = append(all, comparableTree(item))
		}
		count += int(page.Count)
		total += int(page.ScannedCount)
		scanned = append(scanned, strconv.Itoa(int(page.ScannedCount)))
	}
	sortTrees(all)
	out["items"], out["count"], out["total"] = all, strconv.Itoa(count), strconv.Itoa(total)
	if !big && o.Segments == 0 {
		out["scanned"] = scanned
	}
}

// canonicalKey returns the key as text. Equal numbers have the same text.
func canonicalKey(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok && len(n.Value) < 40 {
		if r, ok := new(big.Rat).SetString(n.Value); ok {
			return "N:" + r.RatString()
		}
	}
	return canonical(v)
}

// errorTree returns the details of an error besides its message: the reasons of a cancelled
// transaction, and the item of a failed condition.
func errorTree(err error) tree {
	var canceled *types.TransactionCanceledException
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &canceled):
		var reasons []tree
		for _, reason := range canceled.CancellationReasons {
			reason.Message = nil
			reasons = append(reasons, comparableTree(reason))
		}
		return reasons
	case errors.As(err, &failed) && failed.Item != nil:
		return comparableTree(failed.Item)
	}
	return nil
}

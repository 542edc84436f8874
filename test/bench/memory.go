package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// inMemory opens a journal on a database in this process.
func (b *bench) inMemory(ctx context.Context) (*bench, error) {
	client := dynamotest.Open().Client()
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Classic, Shards: 16}); err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	return &bench{client: client, j: j, pairs: b.pairs, many: b.many}, err
}

// inARow is the number of runs of one side at once, for work that takes microseconds. If the sides
// alternated after each run, each would find the other's data in the caches.
const inARow = 100

// restPause is the pause before a side begins, so that the emulator's garbage collector and
// compiler become idle.
const restPause = 50 * time.Millisecond

// memoryCommit compares the bare transaction of one event on DynamoDB Local with the same on
// dynamotest.
func (b *bench) memoryCommit(ctx context.Context) error {
	const name = "dynamotest-commit"
	memory, err := b.inMemory(ctx)
	if err != nil {
		return err
	}
	var writers [2]*bareWriter
	for i, on := range []*bench{b, memory} {
		repo, err := repository.New(on.j, define(name), repository.Config{Snapshots: repository.Never})
		if err != nil {
			return err
		}
		if writers[i], err = on.bareWriter(ctx, repo, aggregate.ID{Type: name, Value: "bare"}); err != nil {
			return err
		}
	}
	list := events(1, eventBytes)
	return alternate(name, max(1, b.pairs/inARow), speed,
		func(int) (time.Duration, error) {
			return eachOf(func() error { return writers[0].commit(ctx, list) })
		},
		func(int) (time.Duration, error) {
			return eachOf(func() error { return writers[1].commit(ctx, list) })
		},
	)
}

// eachOf calls a function inARow times and returns the time of one call.
func eachOf(do func() error) (time.Duration, error) {
	runtime.GC()
	time.Sleep(restPause)
	took, err := timed(func() error {
		for range inARow {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
	return took / inARow, err
}

// answering is a transport that returns the same reply at once, so that only the work of the SDK
// remains.
type answering string

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, request.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: request, Body: io.NopCloser(bytes.NewReader([]byte(a))),
	}, err
}

// memoryItem compares PutItem and GetItem of an event on dynamotest with the SDK alone.
func (b *bench) memoryItem(ctx context.Context) error {
	memory, err := b.inMemory(ctx)
	if err != nil {
		return err
	}
	alone := dynamodb.New(memory.client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: answering(`{"Item":{"pkey":{"S":"order-1"},"skey":{"S":"order-x-1"},"aid":{"S":"order-x"},"seq_nr":{"N":"1"}}}`)}
	})
	key := item{"pkey": text("order-1"), "skey": text("order-x-1")}
	whole := item{"pkey": key["pkey"], "skey": key["skey"], "aid": text("order-x"), "seq_nr": number(1), "occurred_at": number(1)}
	put := func(client *dynamodb.Client) (time.Duration, error) {
		return eachOf(func() error {
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: whole})
			return err
		})
	}
	get := func(client *dynamodb.Client) (time.Duration, error) {
		return eachOf(func() error {
			_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("journal"), Key: key})
			return err
		})
	}
	compare := func(name string, call func(*dynamodb.Client) (time.Duration, error)) error {
		return alternate(name, max(1, b.pairs/inARow), cost,
			func(int) (time.Duration, error) { return call(alone) },
			func(int) (time.Duration, error) { return call(memory.client) },
		)
	}
	if err := compare("dynamotest-put", put); err != nil {
		return err
	}
	return compare("dynamotest-get", get)
}

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

func TestOpenTakesTheStoredShardCountWhereNoneIsGiven(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		config := s.Config()
		config.Shards = 0
		j := testjournal.Open(t, s.client, config)

		assert.Equal(t, 7, j.Shards())
		assert.Equal(t, 7, j.Config().Shards)
		assert.Same(t, s.client, j.Client())
	})
}

func TestOpenTakesOneConsistentRead(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	client := &meddler{Client: s.client}
	client.getItem = func(_ int, in *dynamodb.GetItemInput, send func() (*dynamodb.GetItemOutput, error)) (*dynamodb.GetItemOutput, error) {
		assert.True(t, *in.ConsistentRead)
		return send()
	}

	s.through(t, client)

	assert.Equal(t, map[string]int{"get": 1}, client.calls)
}

func TestOpenNamesAMissingTable(t *testing.T) {
	t.Parallel()
	_, err := journal.Open(t.Context(), database(t), journal.Config{})

	require.ErrorIs(t, err, journal.ErrTableMissing)
	assert.ErrorContains(t, err, `"journal"`)
	assert.ErrorContains(t, err, "journal.Create creates it")
}

func TestOpenRefusesAConfigThatCannotWork(t *testing.T) {
	t.Parallel()
	client := database(t)
	for name, open := range map[string]func() (*journal.Journal, error){
		"no client": func() (*journal.Journal, error) { return journal.Open(t.Context(), nil, journal.Config{}) },
		"a nil client": func() (*journal.Journal, error) {
			return journal.Open(t.Context(), (*dynamodb.Client)(nil), journal.Config{})
		},
		"bad shards": func() (*journal.Journal, error) {
			return journal.Open(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: -1})
		},
	} {
		j, err := open()
		assert.ErrorAs(t, err, new(*journal.ConfigError), name)
		assert.Nil(t, j, name)
	}
}

type noCredentials struct{}

func (noCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("the vault is closed")
}

func TestOpenSaysThatCredentialsAreMissing(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	for name, change := range map[string]func(*dynamodb.Options){
		"a client without credentials": func(o *dynamodb.Options) { o.Credentials = nil },
		"a provider that fails":        func(o *dynamodb.Options) { o.Credentials = noCredentials{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := journal.Open(t.Context(), dynamodb.New(s.client.Options(), change), s.Config())

			require.ErrorIs(t, err, journal.ErrAccess)
			assert.ErrorContains(t, err, "check the credentials, the region and the permissions on table "+strconv.Quote(s.Config().Tables.Journal))
		})
	}
}

func TestOpenRefusesTablesWithoutDescriptor(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.remove(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"))

		_, err := journal.Open(t.Context(), s.client, s.Config())

		require.ErrorIs(t, err, journal.ErrNoDescriptor)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", s.Config().Tables.Journal))
		assert.ErrorContains(t, err, "journal.Create creates new tables, journal.Adopt takes over")
	})
}

// otherHash is a resolver with another name.
type otherHash struct{ journal.KeyResolver }

func (otherHash) Name() string { return "other-hash" }

func TestOpenNamesBothSidesOfWhatDiffers(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			change       func(*journal.Config)
			stored, here string
		}{
			"the shard count":     {func(c *journal.Config) { c.Shards = 8 }, "shard count 7", "8"},
			"the resolver":        {func(c *journal.Config) { c.Classic.Resolver = otherHash{resolver.FNV1a} }, "key resolver fnv1a-64", "other-hash"},
			"the snapshot table":  {func(c *journal.Config) { c.Tables.Snapshot = "elsewhere" }, `snapshot table "`, `"elsewhere"`},
			"the payload's name":  {func(c *journal.Config) { c.Classic.Attributes.Payload = "body" }, `"Payload":"`, `"Payload":"body"`},
			"the number's name":   {func(c *journal.Config) { c.Classic.Attributes.SequenceNumber = "nr" }, `"SequenceNumber":"se`, `"SequenceNumber":"nr"`},
			"the time's name":     {func(c *journal.Config) { c.Classic.Attributes.OccurredAt = "at" }, `"OccurredAt":"`, `"OccurredAt":"at"`},
			"the version's name":  {func(c *journal.Config) { c.Classic.Attributes.Version = "v" }, `"Version":"`, `"Version":"v"`},
			"the aggregate's":     {func(c *journal.Config) { c.Classic.Attributes.AggregateID = "id" }, `"AggregateID":"`, `"AggregateID":"id"`},
			"the time to live's":  {func(c *journal.Config) { c.Classic.Attributes.TTL = "expires" }, `"TTL":"ttl"`, `"TTL":"expires"`},
			"the partition key's": {func(c *journal.Config) { c.Classic.Attributes.PartitionKey = "pk" }, "", `keys of other names, the config says "pk"`},
			"the sort key's":      {func(c *journal.Config) { c.Classic.Attributes.SortKey = "sk" }, "", `and "sk" in Classic.Attributes`},
		} {
			t.Run(name, func(t *testing.T) {
				config := s.Config()
				c.change(&config)

				j, err := journal.Open(t.Context(), s.client, config)

				require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
				assert.Nil(t, j)
				assert.ErrorContains(t, err, fmt.Sprintf("table %q", s.Config().Tables.Journal))
				assert.ErrorContains(t, err, c.stored)
				assert.ErrorContains(t, err, c.here)
			})
		}
	})
}

func TestOpenGivesTheMismatchAsAType(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})

	config := s.Config()
	config.Shards = 8

	_, err := journal.Open(t.Context(), s.client, config)

	var mismatch *journal.DescriptorMismatchError
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, journal.DescriptorMismatchError{Table: config.Tables.Journal, Field: "shard count", Stored: "7", Given: "8"}, *mismatch)
}

func TestOpenLeavesTablesOfALaterFormatAlone(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		key, newest := s.key("millrace", "descriptor"), int64(1)
		if s.isPacked() {
			key, newest = item{"pkey": text("millrace"), "skey": number(0)}, 2
		}
		s.change(t, s.Config().Tables.Journal, key, item{
			"millrace_format": number(newest + 1), "millrace_shards": nil, // it may omit them
		})

		_, err := journal.Open(t.Context(), s.client, s.Config())

		require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
		assert.ErrorContains(t, err, fmt.Sprintf("has format version %d, this version of Millrace reads up to %d: use", newest+1, newest))
	})
}

func TestOpenRefusesACorruptDescriptor(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		whole := s.get(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"))
		for name, change := range map[string]item{
			"no shard count":         {"millrace_shards": nil},
			"zero shards":            {"millrace_shards": number(0)},
			"negative shards":        {"millrace_shards": number(-7)},
			"too many shards":        {"millrace_shards": number(65_537)},
			"shards as text":         {"millrace_shards": text("7")},
			"no resolver":            {"millrace_resolver": nil},
			"no snapshot table":      {"millrace_snapshot_table": nil},
			"no attribute names":     {"millrace_attributes": nil},
			"broken attribute names": {"millrace_attributes": text("{")},
			"no format":              {"millrace_format": nil},
		} {
			t.Run(name, func(t *testing.T) {
				s.put(t, s.Config().Tables.Journal, whole)
				s.change(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"), change)
				config := s.Config()
				config.Shards = 0

				_, err := journal.Open(t.Context(), s.client, config)

				var corrupt *journal.CorruptItemError
				require.ErrorAs(t, err, new(*journal.CorruptItemError))
				require.ErrorAs(t, err, &corrupt)
				assert.Equal(t, s.Config().Tables.Journal, corrupt.Table)
				assert.Equal(t, "millrace", corrupt.PartitionKey)
				assert.Equal(t, "descriptor", corrupt.SortKey)
			})
		}
	})
}

func TestAResolverThatLeavesTheShardsIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for _, shard := range []int{-1, 7} {
			j := s.through(t, s.client, func(c *journal.Config) { c.Classic.Resolver = astray(shard) })

			_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})

			require.ErrorAs(t, err, new(*journal.ConfigError))
			assert.ErrorContains(t, err, fmt.Sprintf("put user-account-1 into shard %d, but shards are 0 to 6", shard))
		}
		s.requireNothingWritten(t, user("1"))
	})
}

type astray int

func (astray) Name() string                  { return resolver.FNV1a.Name() }
func (a astray) Shard(aggregate.ID, int) int { return int(a) }

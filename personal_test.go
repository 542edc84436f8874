package millrace_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func personal(t *testing.T, ofTypes ...string) func(*millrace.Config) {
	t.Helper()
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes))
	require.NoError(t, err)
	return func(c *millrace.Config) { c.Personal = millrace.Personal{Types: ofTypes, Wrapper: wrapper} }
}

// Forget waits for each group of the type, also of a read model, and for those that it is told of.
func TestAPersonIsForgottenWhenAllGroupsHaveHandledTheLastEvent(t *testing.T) {
	t.Parallel()
	for _, paused := range []string{"mails", "names", "other program"} {
		t.Run(paused, func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t)
			app := open(t, db, personal(t, "order"))
			repo, err := millrace.Repository(app, orders, repository.Config{})
			require.NoError(t, err)
			require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
			model, err := app.ReadModel(t.Context(), readmodel.Config{Name: "names", Topics: []string{"order"}, Refresh: 10 * time.Millisecond},
				func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
					return []projection.Reaction{projection.On(func(context.Context, placed, *journal.Record) ([]projection.Write, error) { return nil, nil })}, nil
				})
			require.NoError(t, err)
			start(t, app)
			ada := testjournal.Execute(t, repo, "7", place("Ada"))
			require.NoError(t, app.Settle(t.Context()))
			table, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("shop-journal")})
			require.NoError(t, err)
			require.NotEmpty(t, table.Items)
			for _, item := range table.Items {
				if payload, ok := item["payload"].(*types.AttributeValueMemberB); ok {
					assert.NotContains(t, string(payload.Value), "Ada", "it is encrypted")
				}
			}

			group := paused
			if paused == "names" {
				serving, err := model.Serving(t.Context())
				require.NoError(t, err)
				group = serving.Group()
			}
			var others []string
			if paused == "other program" {
				others = []string{"other program"}
			} else {
				require.NoError(t, app.Groups().Of(group, "order").Pause(t.Context()))
			}
			ada = testjournal.Execute(t, repo, "7", place("the last event"))
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, app.Forget(ctx, ada.ID, ada.Version, others...), groups.ErrNotApplied)
			_, err = repo.Load(t.Context(), "7")
			require.NoError(t, err, "the key must be there until all groups have handled the event")

			if others == nil {
				require.NoError(t, app.Groups().Of(group, "order").Resume(t.Context()))
			}
			for range 2 {
				require.NoError(t, app.Forget(t.Context(), ada.ID, ada.Version))
			}
			_, err = repo.Load(t.Context(), "7")
			require.ErrorIs(t, err, journal.ErrKeyDestroyed)
		})
	}
}

func TestWhoHasNoKeyCannotBeForgotten(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	_, err := millrace.Open(t.Context(), db.Client(), millrace.Config{Prefix: "shop-", Personal: millrace.Personal{Types: []string{"order"}}})
	require.ErrorAs(t, err, new(*encrypt.ConfigError))
	app := open(t, db, personal(t, "person"))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	placed := testjournal.Execute(t, repo, "1", place("tea"))
	require.ErrorContains(t, app.Forget(t.Context(), placed.ID, placed.Version), `Personal.Types lack "order"`)
	require.ErrorContains(t, app.Forget(t.Context(), aggregate.ID{Type: "person", Value: "1"}, 0), "version of person-1 is 0")

	_, err = db.Client().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("shop-keys")})
	require.NoError(t, err)
	existing := millrace.Config{Prefix: "shop-", ExistingTables: true}
	personal(t, "person")(&existing)
	_, err = millrace.Open(t.Context(), db.Client(), existing)
	require.ErrorIs(t, err, journal.ErrTableMissing)
}

// Open reads the key of the aggregate "ready" of type "millrace", which an application may have.
func TestPersonalDataIsEncryptedWhateverAggregatesHaveKeys(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	open(t, db, personal(t, "order"))
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(db.Client(), wrapper, encrypt.KeysConfig{Table: "shop-keys"})
	require.NoError(t, err)
	ready := aggregate.ID{Type: "millrace", Value: "ready"}
	_, err = keys.EnsureKey(t.Context(), ready)
	require.NoError(t, err)

	for _, id := range []string{"1", "2"} { // with the key, and after it was destroyed
		app := open(t, db, personal(t, "order"))
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		ada := testjournal.Execute(t, repo, id, place("Ada"))
		require.NoError(t, app.Forget(t.Context(), ada.ID, ada.Version))
		_, err = repo.Load(t.Context(), id)
		require.ErrorIs(t, err, journal.ErrKeyDestroyed)
		require.NoError(t, keys.Destroy(t.Context(), ready))
	}
}

package dynamo_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// endpoint returns the URL in the command that inspects the tables.
func endpoint(t *testing.T, db *dynamo.Database) string {
	t.Helper()
	_, after, found := strings.Cut(db.Inspection(journal.Tables{}), "--endpoint ")
	require.True(t, found)
	url, _, _ := strings.Cut(after, " ")
	return url
}

func TestAnotherProgramReachesTheDatabaseOfTheProcess(t *testing.T) {
	isolate(t)
	db, err := dynamo.Open(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, journal.Create(t.Context(), db.Client, journal.Config{Layout: journal.Packed, Shards: 2}))

	t.Setenv(dynamo.EndpointEnv, endpoint(t, db)) // as for another program
	other, err := dynamo.Client(t.Context())
	require.NoError(t, err)
	opened, err := journal.Open(t.Context(), other, journal.Config{})
	require.NoError(t, err)
	assert.Equal(t, 2, opened.Shards())

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint(t, db), nil)
	require.NoError(t, err)
	request.Host = "evil.example"
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusMisdirectedRequest, response.StatusCode, "a web page must not reach it")

	require.NoError(t, db.Close())
	_, err = net.Dial("tcp", strings.TrimPrefix(endpoint(t, db), "http://"))
	assert.Error(t, err, "the address must be free again")
}

func TestAnAddressThatOthersReachIsRefused(t *testing.T) {
	isolate(t)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8000"} {
		_, err := dynamo.Open(t.Context(), address)
		assert.ErrorContains(t, err, "-database "+address+": other machines could read and change the database there", address)
	}
	_, err := dynamo.Open(t.Context(), "8000")
	assert.ErrorContains(t, err, "-database: address 8000: missing port")
}

func TestAPortInUseNamesTheFlag(t *testing.T) {
	isolate(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, err = dynamo.Open(t.Context(), taken.Addr().String())
	assert.ErrorContains(t, err, "choose another address with -database")
}

func TestTheDatabaseIsNotServedWhereItIsNotOfTheProcess(t *testing.T) {
	isolate(t)
	t.Setenv(dynamo.EndpointEnv, "http://127.0.0.1:1")
	_, err := dynamo.Open(t.Context(), "127.0.0.1:0")
	assert.ErrorContains(t, err, "omit one of them")
}

func TestTheCommandLooksAtTheTablesWhereTheyAre(t *testing.T) {
	isolate(t)
	tables := journal.Tables{Journal: "Operation", Checkpoint: "OperationCheckpoint"}
	const of = "--journal-table Operation --checkpoint-table OperationCheckpoint\n"
	db, err := dynamo.Open(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, "Start it with -database 127.0.0.1:8000 to look at its tables with\n\n"+
		"  millrace groups --endpoint http://127.0.0.1:8000 "+of, db.Inspection(tables))
	require.NoError(t, db.Close())

	t.Setenv(dynamo.EndpointEnv, "http://127.0.0.1:4566")
	db, err = dynamo.Open(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, "Look at its tables with\n\n  millrace groups --endpoint http://127.0.0.1:4566 "+of, db.Inspection(tables))

	t.Setenv(dynamo.EndpointEnv, dynamo.AWS)
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	db, err = dynamo.Open(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, db.Inspection(tables), "  millrace groups --endpoint aws "+of)
}

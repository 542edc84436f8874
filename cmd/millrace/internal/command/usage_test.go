package command_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
)

func TestWrongUsageExitsWithTwoAndSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"strem account 1":                  "Did you mean this?\n\tstream\n",
		"stream account -x":                "'x' in -x: put -- before an id that begins with a dash, such as millrace stream account -- -x",
		"stream account --x":               "unknown flag: --x: put -- before an id",
		"group skip audit account -x 1":    "put -- before an id",
		"stream account":                   "stream needs ID",
		"stream":                           "stream needs TYPE and ID",
		"stream account 1 2":               `does not take the argument "2"`,
		"stream account 1 --from 5 --to 4": "--from 5 is after --to 4",
		"stream account 1 --from x":        `--from is "x": want a whole number, 0 or more`,
		"aggregates account --limit -1":    "--limit is -1",
		"aggregates":                       "aggregates needs TYPE",
		"tail":                             "tail needs TOPIC",
		"tail account --since yesterday":   "want beginning, now, a duration",
		"tail account --interval 0s":       "--interval",
		"create --shards 0":                "want 1 to 65536",
		"create --shards abc":              `--shards is "abc": want a whole number` + "\n",
		"tail account --interval 5":        `--interval is "5": want a duration such as`,
		"tail account --follow=maybe":      `--follow is "maybe": want true or false`,
		"adopt":                            "adopt needs --shards",
		"adopt --shards 4":                 "want the resolver of the other program, one of crc32, fnv1a-64",
		"adopt --shards 4 --resolver crc32 --time-unit hours":             "want seconds",
		"create --layout wide":                                            `--layout is "wide": want classic or packed`,
		"export x --since 1h":                                             "--since needs --type",
		"export x --since 1h --type account --resume":                     "begin again",
		"export x --since yesterday --type account":                       "want a duration before now such as",
		"export x --since beginning --type account":                       "want a duration before now such as",
		"create --billing free":                                           "want on-demand or provisioned",
		"create --read-units 5":                                           "need --billing provisioned",
		"create --billing provisioned":                                    "needs --read-units",
		"describe --journal-table x":                                      "is not a name of 3 to 255",
		"describe --nonsense":                                             "unknown flag: --nonsense\n",
		"verify --id 1":                                                   "--id needs --type",
		"verify --against a --archive b":                                  "choose one",
		"verify --archive b --type account":                               "leave out --type",
		"export":                                                          "export needs FILE",
		"export - --resume":                                               "cannot be continued",
		"groups a b c":                                                    `does not take the argument "c"`,
		"groups --interval 5s":                                            "--interval needs --watch",
		"groups a b --interval 2s":                                        "--interval needs --watch",
		"group pause audit":                                               "pause needs TOPIC",
		"group reset audit account":                                       "needs --to",
		"group reset audit account --to then":                             "want beginning, now, a duration",
		"group skip audit account 1 two":                                  "not the number of an event",
		"group unpark audit account":                                      "unpark needs ID, or --all for all parked aggregates",
		"group skip audit account":                                        "skip needs ID and NUMBER, or --all",
		"group unpark audit account --all --reason=":                      "--reason is empty",
		"group parked audit account --type=":                              "--type is empty",
		"group skip audit account --all --type=":                          "--type is empty",
		"group skip audit account 1":                                      "skip needs NUMBER",
		"group unpark audit account 1 --reason x":                         "--reason and --type need --all",
		"group unpark audit account 1 --dry-run":                          "--dry-run needs --all",
		"group unpark audit account 1 --all":                              `does not take the argument "1" with --all`,
		"group unpark audit --all":                                        "unpark needs TOPIC",
		"group skip audit account --all":                                  "confirm it with --yes",
		"group catch-up audit account 1":                                  `does not take the argument "1"`,
		"group catch-up audit account --timeout -1s":                      "want 0s or more",
		"group catch-up audit account --before then":                      "want beginning, now, a duration",
		"group catch-up audit account --before beginning":                 "no event occurred before",
		"group nonsense":                                                  "unknown command",
		"model totals 1":                                                  `does not take the argument "1"`,
		"model begin":                                                     "begin needs NAME",
		"model catch-up totals --max-lag 0":                               "want 1 or more",
		"model switch":                                                    "switch needs NAME and GENERATION",
		"model switch totals two":                                         `"two" is not a generation`,
		"model drop totals":                                               "drop needs GENERATION",
		"model drop totals 1 --refresh 0s":                                "want more than 0",
		"process saga":                                                    "unknown command",
		"process list a b c":                                              `does not take the argument "c"`,
		"process list --open --overdue":                                   "exclude --open",
		"process list --older 1h":                                         "need --open",
		"process list --limit 5":                                          "need --open",
		"process list --open --older -1h":                                 "want 0 or more",
		"process list --open --limit -1":                                  "want 1 or more",
		"process unlist saga":                                             "unlist needs ID",
		"process drop saga o1":                                            "drop needs ROW",
		"init":                                                            "init needs NAME",
		"init Shop":                                                       `"Shop" is not a name`,
		"init shop":                                                       "has no version: pass the folder of the clone with --replace",
		"init shop --replace .":                                           "is not a clone of Millrace",
		"init shop --target ec2":                                          "want fargate or lambda",
		"init shop --module a//b":                                         "is not a path for a module",
		"schema":                                                          `--format is "": want terraform, cloudformation or iam`,
		"schema --format iam":                                             "needs one --role: application, writer",
		"schema --format iam --role writer --role consumer":               "needs one --role",
		"schema --format iam --role owner":                                `--role is "owner": want application, writer`,
		"schema --format iam --role writer --tables process":              "uses none of the tables",
		"schema --format terraform --tables streams":                      `--tables has "streams": want journal, snapshot`,
		"schema --format terraform --tables=":                             "--tables is empty",
		"schema --format terraform --layout wide":                         "Layout",
		"schema --format terraform --layout packed --prefix a%b":          "is not a name of 3 to 255",
		"schema --format terraform --layout packed --model-table a":       "is not a name of 3 to 255",
		"schema --format terraform --layout packed --model-table journal": `two tables have the name "journal"`,
		"schema --format iam --role writer --account ${x}":                `--account is "${x}"`,
		"schema --format iam --role writer --account=":                    `want lower-case letters, digits and dashes, or *`,
		"schema --format terraform --layout=":                             "new tables need --layout",
		// The command in the first lines of the document has these names.
		"schema --format terraform --tables journal --snapshot-table a;b":   `the table name "a;b"`,
		"schema --format terraform --tables journal --checkpoint-table a;b": `the table name "a;b"`,
		"schema --format terraform --tables journal,snapshot,checkpoint --prefix a;b --journal-table jou" +
			" --snapshot-table sta --checkpoint-table che": `--prefix is "a;b"`,
		"schema --format terraform --role writer --role writer":                     `--role has "writer" twice`,
		"schema --format terraform --layout packed --lambda=":                       "--lambda is empty",
		"schema --format terraform --layout packed --lambda a.b":                    `--lambda is "a.b": want up to 64 letters`,
		"schema --format terraform --layout packed --lambda a --lambda-topics ${x}": `--lambda-topics has "${x}": want letters`,
		"schema --format terraform --layout packed --lambda-topics order":           "--lambda-topics needs --lambda",
		"schema --format terraform --tables checkpoint --lambda a":                  "and the table journal",
		"schema --format iam --role application --layout packed --lambda a":         "--lambda needs --format terraform or cloudformation",
		"schema --format terraform --read-units 5":                                  "go with --billing provisioned",
		"schema --format terraform --billing provisioned":                           "needs --read-units",
		"schema --format terraform --billing free":                                  "want on-demand or provisioned",
		"describe --endpoint 127.0.0.1:8000":                                        "want aws, or a URL such as http://127.0.0.1:8000",
		"describe --endpoint ftp://example.com":                                     "want aws, or a URL",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			if strings.Contains(line, "--endpoint") {
				s.env.Connect = func(ctx context.Context, to store.Target) (journal.Client, error) { return to.Connect(ctx) }
			}
			o := s.run(t, strings.Fields(line)...)
			assert.Equal(t, command.ExitUsage, o.code, o.err)
			assert.Contains(t, o.err, want)
			assert.Contains(t, o.err, "--help")
			assert.Empty(t, o.out)
		})
	}
}

func TestAnIDMayBeginWithADash(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	deposits(t, s.open(t, journal.Config{}), account("-x"), 1, 1)
	assert.Regexp(t, `(?m)^aggregate +account -x$`, s.ok(t, "stream", "account", "--", "-x"))
}

func TestHelpTellsTheExitCodes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, args := range [][]string{{}, {"--help"}, {"help"}} {
		out := s.ok(t, args...)
		assert.Contains(t, out, "Exit codes:")
		assert.Contains(t, out, "MILLRACE_DYNAMODB_ENDPOINT")
	}
	for _, name := range []string{"create", "describe", "stream", "tail", "verify", "export", "import"} {
		assert.Contains(t, s.ok(t, name, "--help"), "millrace "+name)
	}
}

func TestHelpFitsIntoATerminal(t *testing.T) {
	t.Parallel()
	s := setup(t)
	names := []string{""}
	for i := 0; i < len(names); i++ {
		help := s.ok(t, append(strings.Fields(names[i]), "--help")...)
		about, _, _ := strings.Cut(help, "\nUsage:\n")
		for line := range strings.Lines(about) {
			assert.LessOrEqual(t, len(line), 104, "%s: %s", names[i], line)
		}
		if strings.Contains(help, "Available Commands:") {
			names = append(names, commandsOf(t, help, strings.TrimLeft(names[i]+" ", " "))...)
		}
	}
	assert.Contains(t, names, "group remove")
}

func TestWhereThereAreNoTablesEachCommandAsksForTheirNames(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, line := range []string{"describe", "stream account 1", "tail account", "verify", "export -"} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		assert.Contains(t, o.err, `"journal"`, line)
		assert.Regexp(t, "--prefix .*-table set whole names.*`millrace create --layout packed`", o.err, "names before new tables: %s", line)
		assert.NotContains(t, o.err, "RequestID", "the SDK's text tells a person nothing more")
		assert.Empty(t, o.out, line)
	}
}

func TestTheEndpointOfTheEnvironmentIsUsedOverASocket(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(dynamotest.New(t).Handler())
	t.Cleanup(server.Close)
	s := setup(t)
	s.env.Connect = func(ctx context.Context, to store.Target) (journal.Client, error) { return to.Connect(ctx) }
	s.env.Getenv = func(name string) string {
		return map[string]string{"MILLRACE_DYNAMODB_ENDPOINT": server.URL + "\n"}[name]
	}

	assert.Contains(t, s.ok(t, "create", "--layout", "packed"), "the DynamoDB at "+server.URL)
	assert.Equal(t, "0 aggregates, 0 events: sound\n", s.ok(t, "verify"))
}

func TestWhereNothingListensTheErrorNamesTheEndpoint(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	s := setup(t)
	s.env.Connect = func(ctx context.Context, to store.Target) (journal.Client, error) { return to.Connect(ctx) }

	o := s.run(t, "describe", "--endpoint", "http://"+address)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "cannot reach the DynamoDB at http://"+address)
	assert.Contains(t, o.err, "amazon/dynamodb-local")
}

func TestAServerThatIsNoDynamoDBIsNamed(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{
		http.StatusNotFound: `{"error": {"code": 404}, "message": {"a": 1}}`, http.StatusOK: `<html>welcome</html>`, http.StatusMethodNotAllowed: "",
		http.StatusForbidden: `{"message": "sign in"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		s := setup(t)
		s.env.Connect = func(ctx context.Context, to store.Target) (journal.Client, error) { return to.Connect(ctx) }

		o := s.run(t, "describe", "--endpoint", server.URL)
		assert.Equal(t, command.ExitFailure, o.code)
		const want = "does not answer like a DynamoDB: check --endpoint or $MILLRACE_DYNAMODB_ENDPOINT\n"
		assert.True(t, strings.HasPrefix(o.err, "millrace: the server at "+server.URL+" "+want), o.err)
	}
}

func TestWhereAWSCannotBeReachedTheErrorAsksForTheRegion(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	client := db.Client(func(o *dynamodb.Options) {
		o.BaseEndpoint = nil
		o.HTTPClient = smithyhttp.ClientDoFunc(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "dynamodb.mars-1.amazonaws.com"}}
		})
	})
	s := setup(t)
	s.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return client, nil }
	o := s.run(t, "describe")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "cannot reach DynamoDB on AWS: ")
	assert.Contains(t, o.err, "Check the region")
}

func TestWhereAnEmulatorLacksATableTheErrorNamesTheAccessKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	// The client of the test has the endpoint of dynamotest.
	for line, key := range map[string]string{
		"describe --endpoint http://127.0.0.1:8000": `the access key "millrace" and the region "us-east-1"`,
		"describe":                            "those of the AWS configuration",
		"adopt --shards 2 --resolver js-hash": "those of the AWS configuration",
		"describe --endpoint https://dynamodb.eu-west-1.amazonaws.com --profile default": "",
	} {
		o := s.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitFailure, o.code, line)
		assert.Contains(t, o.err, key, line)
		assert.Equal(t, key != "", strings.Contains(o.err, "DynamoDB Local has separate tables"), line)
	}
}

package packed

import (
	"errors"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

// keptCommand is a command id that a snapshot or an item keeps. It is stored as an array of the
// fields, without the last one if the id is kept forever.
type keptCommand struct {
	keptFields
	Hold uint64 // in seconds; 0 for forever
}

type keptFields struct {
	ID      any // a digest or text; see layout.stored
	Commit  any // 16 bytes or text
	First   uint64
	Version uint64
	Millis  int64
}

type keptForever struct {
	_ struct{} `cbor:",toarray"`
	keptFields
}

type keptFor struct {
	_ struct{} `cbor:",toarray"`
	keptFields
	Hold uint64
}

// arrayOf5 is the first byte of an array with five elements in CBOR.
const arrayOf5 = 0x85

// UnmarshalCBOR reads an array of either length. The library refuses a length that is not the
// number of fields.
func (k *keptCommand) UnmarshalCBOR(encoded []byte) error {
	var err error
	if encoded[0] == arrayOf5 {
		var forever keptForever
		err = decoding.Unmarshal(encoded, &forever)
		*k = keptCommand{keptFields: forever.keptFields}
	} else {
		var limited keptFor
		err = decoding.Unmarshal(encoded, &limited)
		*k = keptCommand{limited.keptFields, limited.Hold}
	}
	if err == nil && !k.hasID() {
		err = errors.New("an id is neither text nor a digest")
	}
	return err
}

func (k *keptCommand) hasID() bool {
	switch id := k.ID.(type) {
	case string:
		return true
	case []byte:
		return len(id) == digestBytes
	}
	return false
}

func unmarshalCommands(encoded []byte, into *[]keptCommand) error {
	return decoding.Unmarshal(encoded, into)
}

// digestBytes is the length of the digest that stands for a command id.
const digestBytes = 16

// stored returns a command id as the table stores it: a digest, or the text in a table of the first
// format. The commands of an aggregate are known by this form.
func (p *layout) stored(commandID string) string {
	if !p.compresses || commandID == "" {
		return commandID
	}
	sum := engine.CommandDigest(commandID)
	return string(sum[:digestBytes])
}

// commandValue returns the attribute value of a stored command id.
func (p *layout) commandValue(stored string) types.AttributeValue {
	if p.compresses {
		return table.BinaryValue([]byte(stored))
	}
	return table.StringValue(stored)
}

func (p *layout) commandsValue(commands []storage.DatedCommand) (types.AttributeValue, error) {
	stored := make([]any, len(commands))
	for i, d := range commands {
		var id any = d.ID
		if p.compresses {
			id = []byte(d.ID)
		}
		fields := keptFields{ID: id, Commit: packID(d.CommitID), First: d.First, Version: d.Version, Millis: d.At.UnixMilli()}
		if d.Keep > 0 {
			stored[i] = keptFor{keptFields: fields, Hold: secondsOf(d.Keep)}
		} else {
			stored[i] = keptForever{keptFields: fields}
		}
	}
	encoded, err := cbor.Marshal(stored)
	return table.BinaryValue(encoded), err
}

func (k *keptCommand) dated() storage.DatedCommand {
	c := storage.DatedCommand{
		Command: storage.Command{First: k.First, Version: k.Version},
		At:      time.UnixMilli(k.Millis).UTC(),
		Keep:    durationOf(k.Hold),
	}
	switch id := k.ID.(type) {
	case string:
		c.ID = id
	case []byte:
		c.ID = string(id)
	}
	switch id := k.Commit.(type) {
	case string:
		c.CommitID = id
	case []byte:
		if parsed, err := uuid.FromBytes(id); err == nil {
			c.CommitID = parsed.String()
		}
	}
	return c
}

// secondsOf returns a positive duration in seconds, rounded up.
func secondsOf(d time.Duration) uint64 {
	return uint64((d-1)/time.Second) + 1 //nolint:gosec // it is not negative
}

// durationOf converts seconds to a duration, at most the longest one.
func durationOf(seconds uint64) time.Duration {
	return time.Duration(min(seconds, uint64(math.MaxInt64/time.Second))) * time.Second //nolint:gosec // it is in range
}

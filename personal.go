package millrace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

// Personal selects aggregates with personal data, whose payloads are encrypted (package encrypt).
// Each aggregate has a key of its own, and [App.Forget] destroys it. The keys are in the table
// Prefix + "keys", which [Open] creates like the other tables.
type Personal struct {
	// Types are the types of the aggregates. A type can be added later, while it has no aggregates.
	// Default: none, so nothing is encrypted.
	Types []string
	// Wrapper encrypts the keys. It is required if there are Types. See section Keys of package
	// encrypt.
	Wrapper encrypt.Wrapper
}

// open opens the table of keys, and adds the encryption to the configuration of the journal.
func (p Personal) open(ctx context.Context, client journal.Client, c *Config) (*encrypt.Encryption, error) {
	if len(p.Types) == 0 {
		return nil, nil //nolint:nilnil // nothing is encrypted
	}
	table := encrypt.KeysConfig{Table: c.Prefix + "keys", Throughput: c.Journal.Throughput, Now: c.Journal.Now}
	keys, err := encrypt.NewKeys(client, p.Wrapper, table)
	if err != nil {
		return nil, err
	}
	if !c.ExistingTables {
		if err := encrypt.CreateTable(ctx, client, table); err != nil {
			return nil, err
		}
	}
	// This request finds a missing table now, and not at the first event. It costs one read unit.
	// Whether this aggregate has a key does not matter.
	_, err = keys.Key(ctx, aggregate.ID{Type: "millrace", Value: "ready"})
	if err != nil && !errors.Is(err, encrypt.ErrNoKey) && !errors.Is(err, journal.ErrKeyDestroyed) {
		return nil, err
	}
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	if err != nil {
		return nil, err
	}
	c.Journal.Encodings = append(slices.Clone(c.Journal.Encodings), journal.ForTypes(secret, p.Types...))
	required := maps.Clone(c.Journal.RequiredByType)
	if required == nil {
		required = map[string][]string{}
	}
	for _, of := range p.Types {
		required[of] = append(slices.Clone(required[of]), secret.Name())
	}
	c.Journal.RequiredByType = required
	return secret, nil
}

// Forget destroys the key of an aggregate with personal data, so that nobody can read its events,
// snapshots, archives and backups any more. Append an event before that tells read models to delete
// the data, and pass the version after it: Forget waits until all consumer groups of the App that
// handle the aggregate's type have handled it, and then destroys the key. A group would pass over
// an event whose key is destroyed.
//
//	person, err := persons.Execute(ctx, id, Forget)
//	if errors.Is(err, journal.ErrKeyDestroyed) {
//		return nil // the person was forgotten before
//	}
//	if err != nil {
//		return err
//	}
//	return app.Forget(ctx, person.ID, person.Version)
//
// All live generations of the App's read models count, also those that begin while Forget waits.
// Name the groups of other programs that handle the type in others. An event that a group has
// skipped or deferred counts as handled. The wait lasts until ctx ends if a group is paused, or if
// the aggregate is blocked or parked: set a deadline. Processes that have the key in memory can
// read the data for up to 5 more minutes. So begin no generation in this time: it could apply early
// events, and pass over the last one.
//
// After an error call Forget again, which costs a write unit, and two read units for each group.
//
// Errors: [*ConfigError] if the type is not one of Config.Personal, or version is 0; the errors of
// groups.Groups.WaitApplied and of encrypt.Encryption.Destroy.
func (a *App) Forget(ctx context.Context, id aggregate.ID, version uint64, others ...string) error {
	switch {
	case !slices.Contains(a.config.Personal.Types, id.Type):
		return &ConfigError{"Personal.Types", fmt.Sprintf("lack %q, so %s has no key to destroy; delete the aggregate instead (repository.Repository.Delete)", id.Type, id)}
	case version == 0:
		return &ConfigError{"version", fmt.Sprintf("of %s is 0; pass the version after the event that tells read models to delete the data", id)}
	}
	waited := map[string]bool{}
	for {
		handling, err := a.allGroupsOf(ctx, id.Type)
		if err != nil {
			return fmt.Errorf("forget %s: %w", id, err)
		}
		handling = slices.DeleteFunc(append(handling, others...), func(group string) bool { return waited[group] })
		if len(handling) == 0 {
			break // no generation of a read model has begun meanwhile
		}
		for _, group := range handling {
			if err := a.groups.WaitApplied(ctx, group, id, version); err != nil {
				return fmt.Errorf("forget %s: %w", id, err)
			}
			waited[group] = true
		}
	}
	if err := a.secret.Destroy(ctx, id); err != nil {
		return fmt.Errorf("forget %s: %w", id, err)
	}
	return nil
}

// allGroupsOf returns the consumer groups of the App that handle a topic, with those of the live
// generations of its read models.
func (a *App) allGroupsOf(ctx context.Context, topic string) (all []string, err error) {
	all = a.groupsOf(topic)
	for _, model := range a.readModels {
		if !slices.Contains(model.config.Topics, topic) {
			continue
		}
		generations, err := model.model.Generations(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range generations.Live {
			all = append(all, g.Group())
		}
	}
	return all, nil
}

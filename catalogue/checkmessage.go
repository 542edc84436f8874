package catalogue

import "fmt"

func (c *check) messageGone(old *entry) {
	if last := c.lastVersion(old); last > old.Version {
		c.note(old, "this version was removed", fmt.Sprintf("consumers have to read version %d", last),
			"check that no consumer reads the former version before you deploy")
		return
	}
	c.breaks(old, "", "the message was removed", "other programs still use it",
		"restore the message, declare a later version of it in Config.Channels, or accept the change if no program uses it any more")
}

func (c *check) message(old, now *entry) {
	version := fmt.Sprintf("declare the changed message with Version: %d (WithVersion(%[1]d) of a forward.Mapping)", c.lastVersion(old)+1)
	if old.Address != now.Address {
		c.breaks(old, "", fmt.Sprintf("the address was %q and is %q", old.Address, now.Address), "other programs use the former address",
			"restore the address, or declare a second channel until all of them use the new address")
	}
	if old.Codec != now.Codec {
		c.breaks(old, "", fmt.Sprintf("the codec was %s and is %s", old.Codec, now.Codec), "other programs decode the former format",
			"restore the codec, or "+version)
		return
	}
	diffs := messageDifferences(old.schema, c.standalone(now))
	c.payload(old, diffs, "former messages", version)
	for _, d := range diffs {
		switch field := d.where(); d.kind {
		case nowOptional:
			c.breaks(old, d.field, field+" is no longer required", "other programs may rely on it",
				"remove omitempty and omitzero from its tag, or "+version)
		case widened:
			c.breaks(old, d.field, fmt.Sprintf("%s was %s and is %s", field, d.old, d.new), "other programs may not accept larger numbers",
				"restore the type, or "+version)
		case nowNull:
			c.breaks(old, d.field, field+" allows null now", "other programs may not accept null", "restore the type, or "+version)
		}
	}
}

// lastVersion returns the highest current version of a message, 0 if there is none.
func (c *check) lastVersion(of *entry) (last int) {
	for s := range c.now {
		if s.kind == message && s.owner == of.Channel && s.name == of.Message {
			last = max(last, s.version)
		}
	}
	return last
}

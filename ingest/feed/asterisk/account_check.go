package asterisk

import (
	"fmt"
	"slices"
	"strings"

	"trunkline/telephony/ami"
)

// accountCheck records which channels and queue members of a snapshot have an account.
type accountCheck struct {
	members, channels map[string]bool // by interface and by name; the value tells whether the account is known
	names             []string        // of the channels without an account
}

func newAccountCheck() accountCheck {
	return accountCheck{members: map[string]bool{}, channels: map[string]bool{}}
}

// add records the account of a list's item, and the names that were looked up.
func (c *accountCheck) add(message *ami.Message, account string, names []string) {
	switch message.Name() {
	case "QueueMember":
		c.members[memberInterface(message)] = account != ""
	case "CoreShowChannel":
		c.channels[message.Get("Channel")] = account != ""
		for _, name := range names {
			if !slices.Contains(c.names, name) && len(c.names) < 10 {
				c.names = append(c.names, name)
			}
		}
	}
}

// notes tells the rules of channels apart from those of queue members: a member's own calls have no queue, by
// which the member itself is mapped.
func (c *accountCheck) notes(p *platform) (notes []string) {
	if p.cfg.Account != "" {
		return nil
	}

	unknown := func(known map[string]bool) (n int) {
		for _, ok := range known {
			if !ok {
				n++
			}
		}
		return n
	}

	n := unknown(c.members)
	if n > 0 {
		notes = append(notes,
			fmt.Sprintf("%d of %d queue members have no account: a member's events are mapped by its queue and its phone; add a rule for them to accounts",
				n, len(c.members)))
	}

	rules := []string{"context"}
	if p.cfg.UseAccountcode {
		rules = slices.Insert(rules, 0, "account code")
	}
	if p.cfg.AccountVariable != "" {
		rules = slices.Insert(rules, 0, "variable "+p.cfg.AccountVariable)
	}

	by := strings.Join(rules, ", ")
	switch n := unknown(c.channels); {
	case n > 0:
		notes = append(notes,
			fmt.Sprintf("%d of %d channels have no account, and their events become dead letters: a channel is mapped by its %s; "+
				"those of a queue's call also by the queue, a member's own calls not. Names seen: %q; add a rule for one of them to accounts",
				n, len(c.channels), by, c.names))
	case len(c.channels) == 0 && len(c.members) > 0:
		notes = append(notes,
			fmt.Sprintf("no channel is up, whose account could be checked: a channel is mapped by its %s, "+
				"a queue member's own calls too, and not by the member's queue. Make such a call and check again", by))
	}

	return notes
}

package asterisk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"trunkline/telephony/ami"
)

// classContent has what the classes of the default mask tell.
var classContent = map[string]string{
	"agent": "queues and agents", "call": "calls", "cdr": "call records",
	"dialplan": "the reason why a caller left a queue, and variables",
	"dtmf":     "digits", "system": "registrations, and reloads",
}

// checkClasses notes the classes of the mask that the user may not read: Asterisk leaves their events out without
// a word. It asks for the user's section of manager.conf, which needs write = system or config.
func (s *session) checkClasses(ctx context.Context) error {
	cfg := s.platform.cfg
	section, err := s.conn.Do(ctx, ami.Action{Name: "GetConfig", Fields: []ami.Field{
		{Key: "Filename", Value: "manager.conf"}, {Key: "Category", Value: cfg.Username},
	}})
	switch {
	case denied(err):
		s.notes = append(s.notes,
			fmt.Sprintf("whether the user may read the events is unknown: manager.conf, [%s]: write = system lets Trunkline look; read needs %s",
				cfg.Username, s.platform.eventMask))
		return nil
	case isRefusal(err):
		s.notes = append(s.notes,
			fmt.Sprintf("whether the user may read the events is unknown: Asterisk shows no section [%s] of manager.conf (%v); read needs %s",
				cfg.Username, err, s.platform.eventMask))
		return nil
	case err != nil:
		return fmt.Errorf("asking for the user's rights: %w", err)
	}

	missing := missingClasses(strings.Split(s.platform.eventMask, ","), readClasses(section))
	if len(missing) == 0 {
		return nil
	}

	var content []string
	for _, class := range missing {
		text := classContent[class]
		if text != "" {
			content = append(content, text)
		}
	}

	note := fmt.Sprintf(
		"the user may not read the classes %s (%s), whose events do not arrive: manager.conf, [%s]: read = %s",
		strings.Join(missing, ", "), strings.Join(content, "; "), cfg.Username, s.platform.eventMask)
	s.notes = append(s.notes, note)
	s.platform.deps.Log.Warn("events denied by the platform", "classes", missing, "advice", note)

	return nil
}

// readClasses returns the classes in the read line of a section of manager.conf. As in Asterisk the last line
// counts, and a class with a space before it is none.
func readClasses(section *ami.Message) (classes []string) {
	for _, f := range section.Fields {
		key, value, ok := strings.Cut(f.Value, "=")
		if ok && strings.HasPrefix(f.Key, "Line-") && strings.EqualFold(strings.TrimSpace(key), "read") {
			classes = strings.Split(strings.TrimLeft(value, "> \t"), ",")
		}
	}
	return classes
}

// missingClasses returns the wanted classes that are not among the read ones.
func missingClasses(wanted, read []string) (missing []string) {
	if slices.Contains(read, "all") {
		return nil
	}
	for _, class := range wanted {
		if class != "all" && class != "on" && !slices.Contains(read, class) {
			missing = append(missing, class)
		}
	}
	return missing
}

// accountCheck records which channels and queue members of a snapshot have an account.
type accountCheck struct {
	members, channels map[string]bool // by interface and by name; the value tells whether the account is known
	names             []string        // of the channels without an account
}

func newAccountCheck() accountCheck {
	return accountCheck{members: map[string]bool{}, channels: map[string]bool{}}
}

// add records the account of a list's item, and the names that were looked up.
func (c *accountCheck) add(p *ami.Message, account string, names []string) {
	switch p.Name() {
	case "QueueMember":
		c.members[memberInterface(p)] = account != ""
	case "CoreShowChannel":
		c.channels[p.Get("Channel")] = account != ""
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

package asterisk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"trunkline/telephony/ami"
)

// classContent has what the events of each class of the default mask are about, in words of a note.
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

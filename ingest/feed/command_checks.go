package feed

import (
	"slices"
	"strings"

	"trunkline/internal/fault"
)

// CheckCommand keeps texts of a command from being read as something else by a platform: it returns
// fault.KindConflict for an id that could be read as more than one word of a platform's command, for
// an agent's name with a control character, and for a number or extension that could be read as a
// dial string: one with "@" or "/" names a trunk or another tenant's phone. It returns fault.KindInvalid
// for a control character in the reason, which the request has.
func CheckCommand(c Command) error {
	for _, text := range append(
		[]string{c.AgentID, c.QueueID, c.CallID, c.Domain, c.ProviderID, c.SessionID}, c.Queues...) {
		if strings.ContainsFunc(text,
			func(r rune) bool { return !isSafeRune(r) && !strings.ContainsRune("@/:~", r) }) {
			return fault.Conflict("The id %.80q has a character that cannot be sent to the platform", text)
		}
	}

	for _, text := range []string{c.Destination, c.Extension} {
		if strings.ContainsFunc(text, func(r rune) bool { return !isSafeRune(r) }) {
			return fault.Conflict("The number %.80q has a character that cannot be dialled", text)
		}
	}

	if strings.ContainsFunc(c.Reason, isControl) {
		return fault.InvalidField("reason", "invalid", "The reason has a control character")
	}
	if strings.ContainsFunc(c.AgentName, isControl) {
		return fault.Conflict("The agent's name %.80q has a control character", c.AgentName)
	}

	return nil
}

// isControl reports whether a character could end a line or a text of a platform's command.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// SafeNumber returns a number if a command can have it, "" for what is none, such as "anonymous caller".
func SafeNumber(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !isSafeRune(r) }) {
		return ""
	}
	return text
}

// isSafeRune reports whether a character, of a number or in an id, means nothing in the commands and dial strings
// of any platform.
func isSafeRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".-_+*#", r)
}

// checkQueueAccount returns fault.KindNotFound if an agent is to join a queue that is not known as one of
// its account: on a platform of several tenants it would get their callers.
func (r *runner) checkQueueAccount(c Command) error {
	if c.QueueID == "" || !slices.Contains(AgentActions, c.Action) {
		return nil
	}
	if r.cfg.Kind == KindKazoo {
		return nil // Crossbar looks a queue up in the agent's account alone
	}

	domain := c.QueueID[strings.LastIndexByte(c.QueueID, '@')+1:]
	if r.accounts.Account(domain, c.QueueID) == c.AccountID {
		return nil
	}

	return fault.NotFound(
		"The account has no such queue. Whose a queue is, its domain decides, or accounts in the settings of the feed %s",
		r.cfg.Name)
}

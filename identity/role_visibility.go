package identity

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"trunkline/event"
)

// Limits restrict a role to queues and agents, in the account and those below it.
type Limits struct {
	QueueIDs []string // of a supervisor; empty: all queues and agents
	AgentIDs []string // of an agent; empty: those with the extension of its user, in its own account
}

// hasSameIDs reports whether both have the same ids in the same order.
func (l Limits) hasSameIDs(other Limits) bool {
	return slices.Equal(l.QueueIDs, other.QueueIDs) && slices.Equal(l.AgentIDs, other.AgentIDs)
}

// Visibility decides which events, records, figures and recordings of its accounts a caller sees.
// It is immutable.
type Visibility struct {
	callerRole   Role
	account      string // the caller's own
	ownExtension string // of an agent without Limits.AgentIDs
	limitedTo    Limits
	queues       map[string]struct{} // nil: all
	agents       map[string]struct{}
}

// NewVisibility returns the visibility of a role. The extension is the user's, "" for none.
func NewVisibility(role Role, account, extension string, limits Limits) *Visibility {
	s := &Visibility{callerRole: role, account: account}
	switch role {
	case RoleSupervisor:
		s.limitedTo.QueueIDs, s.queues = limits.QueueIDs, idSet(limits.QueueIDs)
	case RoleAgent:
		s.limitedTo.AgentIDs, s.agents = limits.AgentIDs, idSet(limits.AgentIDs)
		if s.agents == nil {
			s.ownExtension = extension
		}
	}

	return s
}

// SeesEverything reports whether nothing is hidden.
func (s *Visibility) SeesEverything() bool {
	return s.callerRole == RoleAdmin || s.callerRole == RoleUser
}

// SeesNothing reports whether everything is hidden.
func (s *Visibility) SeesNothing() bool {
	switch s.callerRole {
	case RoleAdmin, RoleUser, RoleSupervisor:
		return false
	case RoleAgent:
		return s.agents == nil && s.ownExtension == ""
	}
	return true
}

// Admits reports whether what has the agent and the queue ("" for none) is seen. memberOf
// are the agent's other queues, separated by NUL.
func (s *Visibility) Admits(account, agent, queue, memberOf string) bool {
	switch s.callerRole {
	case RoleAdmin, RoleUser:
		return true
	case RoleSupervisor:
		if s.queues == nil {
			return agent != "" || queue != ""
		}
		return s.HasQueue(queue) || s.hasOneOf(memberOf)
	case RoleAgent:
		return s.HasAgent(account, agent)
	}

	return false
}

// SeesTranscripts reports whether what was said in the calls that are seen is seen too.
func (s *Visibility) SeesTranscripts() bool { return s.callerRole != RoleUser }

// HasQueue reports whether the queue is one of a supervisor's.
func (s *Visibility) HasQueue(queue string) bool {
	if s.callerRole != RoleSupervisor || queue == "" {
		return s.SeesEverything()
	}
	_, ok := s.queues[queue]
	return ok || s.queues == nil
}

func (s *Visibility) hasOneOf(queues string) bool {
	for queues != "" {
		queue, rest, _ := strings.Cut(queues, event.QueueSeparator)
		if _, ok := s.queues[queue]; ok {
			return true
		}
		queues = rest
	}
	return false
}

// HasAgent reports whether the agent is one of an agent's own ids.
func (s *Visibility) HasAgent(account, agent string) bool {
	if s.callerRole != RoleAgent || agent == "" {
		return s.SeesEverything()
	}
	if s.ownExtension != "" {
		return account == s.account && event.AgentExtension(agent) == s.ownExtension
	}
	_, ok := s.agents[agent]
	return ok
}

// Limits returns the queues or agents to which the visibility is limited.
func (s *Visibility) Limits() Limits { return s.limitedTo }

// Extension returns the extension whose agents an agent sees, in its own account; "" if its
// agents are named.
func (s *Visibility) Extension() string { return s.ownExtension }

// Role returns the role of the visibility.
func (s *Visibility) Role() Role { return s.callerRole }

// Equal reports whether both show the same.
func (s *Visibility) Equal(other *Visibility) bool {
	return s == other ||
		s.callerRole == other.callerRole && s.account == other.account && s.ownExtension == other.ownExtension &&
			s.limitedTo.hasSameIDs(other.limitedTo)
}

// VisibilityOf returns what a principal sees now. It needs no I/O. Of a user or key that memory
// does not have, it sees nothing.
func (d *Directory) VisibilityOf(p *Principal) *Visibility {
	if p.KeyID != "" {
		key := d.snapshot.Load().keysByID[p.KeyID]
		role := key.Role
		// A channel token of a key sees what a user sees, and transcripts where the key may read recordings.
		if !p.IsKey() && role == RoleAdmin && !slices.Contains(key.Scopes, ScopeRecordings) {
			role = RoleUser
		}

		return NewVisibility(role, p.AccountID, "", key.Limits)
	}

	user, _ := d.userStates.find(p.UserID)
	return NewVisibility(user.role, user.accountID, user.extension, user.limits)
}

// Visibility returns what the principal sees, as of its authentication.
func (p *Principal) Visibility() *Visibility {
	if p.storedVisibility == nil {
		return NewVisibility(p.Role, p.AccountID, "", Limits{})
	}
	return p.storedVisibility
}

// WithVisibility returns the principal with what it sees, for tests of other packages.
func (p Principal) WithVisibility(s *Visibility) *Principal {
	p.storedVisibility = s
	return &p
}

// checkLimits checks the limits of a role.
func (p *fieldProblems) checkLimits(prefix string, role Role, limits Limits) {
	for _, list := range []struct {
		field string
		ids   []string
		role  Role
	}{{"queue_ids", limits.QueueIDs, RoleSupervisor}, {"agent_ids", limits.AgentIDs, RoleAgent}} {
		if len(list.ids) > 0 && role != list.role {
			p.add(prefix+list.field, "unsupported", prefix+list.field+" is for the role "+string(list.role))
			continue
		}
		if len(list.ids) > maxFilterIDs {
			p.add(prefix+list.field, codeTooMany, "at most 1,000 entries can be named")
			continue
		}

		p.checkIDs(prefix+list.field, list.ids)
	}
}

// clean returns the limits without repeated ids, and without empty lists.
func (l Limits) clean() Limits {
	return Limits{unique(l.QueueIDs), unique(l.AgentIDs)}
}

// roleOfKey returns the role of an API key; "" is that of the keys of before roles.
func roleOfKey(role Role) Role { return cmp.Or(role, RoleAdmin) }

// joinRoles returns the names of all roles.
func joinRoles(separator string) string {
	names := make([]string, len(knownRoles))
	for i, role := range knownRoles {
		names[i] = string(role)
	}
	return strings.Join(names, separator)
}

// stored returns the role in the column that earlier versions read, to which RoleUser is the
// most that they may give.
func (r Role) stored() string {
	if r.limited() {
		return string(RoleUser)
	}
	return string(r)
}

// storedLimited returns the role in the column limited_role.
func (r Role) storedLimited() string {
	if r.limited() {
		return string(r)
	}
	return ""
}

// idList is a list of ids in a column: a JSON array, "" for an empty one.
type idList []string

// Value implements driver.Valuer.
func (l idList) Value() (driver.Value, error) {
	if len(l) == 0 {
		return "", nil
	}
	text, err := json.Marshal([]string(l))
	return string(text), err
}

// Scan implements sql.Scanner.
func (l *idList) Scan(value any) error {
	var text []byte
	switch v := value.(type) {
	case string:
		text = []byte(v)
	case []byte:
		text = v
	default:
		return fmt.Errorf("a list of ids is text, not %T", value)
	}

	*l = nil
	if len(text) == 0 {
		return nil
	}

	return json.Unmarshal(text, (*[]string)(l))
}

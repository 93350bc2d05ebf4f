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
	queues       map[string]struct{} // of a supervisor; nil: all
	agents       map[string]struct{} // of an agent; nil: those with ownExtension
}

// NewVisibility returns the visibility of a role. The extension is the user's, "" for none.
func NewVisibility(role Role, account, extension string, limits Limits) *Visibility {
	v := &Visibility{callerRole: role, account: account}
	switch role {
	case RoleSupervisor:
		v.limitedTo.QueueIDs, v.queues = limits.QueueIDs, idSet(limits.QueueIDs)
	case RoleAgent:
		v.limitedTo.AgentIDs, v.agents = limits.AgentIDs, idSet(limits.AgentIDs)
		if v.agents == nil {
			v.ownExtension = extension
		}
	}

	return v
}

// AdmitsAll reports whether Admits is true of everything. It does not tell of transcripts.
func (v *Visibility) AdmitsAll() bool {
	return v.callerRole == RoleAdmin || v.callerRole == RoleUser
}

// AdmitsNone reports whether Admits is true of nothing.
func (v *Visibility) AdmitsNone() bool {
	switch v.callerRole {
	case RoleAdmin, RoleUser, RoleSupervisor:
		return false
	case RoleAgent:
		return v.agents == nil && v.ownExtension == ""
	}
	return true
}

// Admits reports whether what has the agent and the queue ("" for none) is seen. otherQueues
// are the agent's other queues, separated by event.QueueSeparator.
func (v *Visibility) Admits(account, agent, queue, otherQueues string) bool {
	switch v.callerRole {
	case RoleAdmin, RoleUser:
		return true
	case RoleSupervisor:
		if v.queues == nil {
			return agent != "" || queue != ""
		}
		return v.SeesQueue(queue) || v.seesOneOf(otherQueues)
	case RoleAgent:
		return v.SeesAgent(account, agent)
	}

	return false
}

// SeesTranscripts reports whether what was said in the calls that are seen is seen too.
func (v *Visibility) SeesTranscripts() bool { return v.callerRole != RoleUser }

// SeesQueue reports whether the queue as a whole is seen: by a supervisor where it is its own, never by an agent.
func (v *Visibility) SeesQueue(queue string) bool {
	if v.callerRole != RoleSupervisor || queue == "" {
		return v.AdmitsAll()
	}
	_, ok := v.queues[queue]
	return ok || v.queues == nil
}

// seesOneOf reports whether one of a supervisor's queues is in a list as Admits takes it.
func (v *Visibility) seesOneOf(list string) bool {
	for list != "" {
		queue, rest, _ := strings.Cut(list, event.QueueSeparator)
		if _, ok := v.queues[queue]; ok {
			return true
		}
		list = rest
	}
	return false
}

// SeesAgent reports whether the agent is seen by an agent: it is one of its own ids. A supervisor sees agents by
// their queues, which Admits tells.
func (v *Visibility) SeesAgent(account, agent string) bool {
	if v.callerRole != RoleAgent || agent == "" {
		return v.AdmitsAll()
	}
	if v.ownExtension != "" {
		return account == v.account && event.AgentExtension(agent) == v.ownExtension
	}
	_, ok := v.agents[agent]
	return ok
}

// Limits returns the queues or agents to which the visibility is limited.
func (v *Visibility) Limits() Limits { return v.limitedTo }

// Extension returns the extension whose agents an agent sees, in its own account; "" if its
// agents are named.
func (v *Visibility) Extension() string { return v.ownExtension }

// Role returns the role of the visibility.
func (v *Visibility) Role() Role { return v.callerRole }

// Equal reports whether both show the same.
func (v *Visibility) Equal(other *Visibility) bool {
	return v == other ||
		v.callerRole == other.callerRole && v.account == other.account && v.ownExtension == other.ownExtension &&
			v.limitedTo.hasSameIDs(other.limitedTo)
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
	if p.authVisibility == nil {
		return NewVisibility(p.Role, p.AccountID, "", Limits{})
	}
	return p.authVisibility
}

// WithVisibility returns the principal with what it sees, for tests of other packages.
func (p Principal) WithVisibility(v *Visibility) *Principal {
	p.authVisibility = v
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

// inRoleColumn returns the role in the column that earlier versions read, to which RoleUser is the
// most that they may give.
func (r Role) inRoleColumn() string {
	if r.unknownToEarlierVersions() {
		return string(RoleUser)
	}
	return string(r)
}

// inLimitedRoleColumn returns the role in the column limited_role.
func (r Role) inLimitedRoleColumn() string {
	if r.unknownToEarlierVersions() {
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

package identity

import (
	"context"
	"sync"

	"trunkline/internal/sqldb"
)

// userState is the part of a user that is kept in memory to check tokens.
type userState struct {
	accountID  string
	role       Role
	extension  string
	limits     Limits
	generation int64  // passwordGeneration; tokens of an earlier one are refused
	keptFamily string // the session that changed the password; its tokens stay valid
}

// userStates has the state of every user, by id.
type userStates struct {
	mu     sync.RWMutex
	states map[string]userState
}

func (u *userStates) find(id string) (userState, bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	state, known := u.states[id]
	return state, known
}

func (u *userStates) put(states map[string]userState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, state := range states {
		u.states[id] = state
	}
}

// add puts the state of a user that is not known. One that a reload has put meanwhile is newer.
func (u *userStates) add(id string, state userState) {
	u.mu.Lock()
	defer u.mu.Unlock()

	_, known := u.states[id]
	if !known {
		u.states[id] = state
	}
}

func (u *userStates) remove(revoked []revocation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, revocation := range revoked {
		delete(u.states, revocation.id)
	}
}

func (u *userStates) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.states)
}

// reloadUsers reads the users that changed after a revision; 0 reads all. Deleted ones are
// forgotten by their revocations: see Tokens.reloadRevocations.
func (d *Directory) reloadUsers(ctx context.Context, after int64) error {
	changed, err := readUserStates(ctx, d.db, after)
	if err != nil {
		return err
	}
	if after == 0 {
		d.userStates.clear()
	}
	d.userStates.put(changed)
	return nil
}

// readUserStates reads the users that changed after a revision.
func readUserStates(ctx context.Context, db sqldb.Runner, after int64) (map[string]userState, error) {
	states := make(map[string]userState)
	rows, err := db.QueryContext(ctx, `SELECT id, `+userStateColumns+` FROM identity_users WHERE revision > $1`, after)
	_, err = sqldb.Collect(rows, err, "reading changed users", func(scan sqldb.ScanFunc) (struct{}, error) {
		var id string
		var state userState
		err := scan(append([]any{&id}, state.columns()...)...)
		states[id] = state
		return struct{}{}, err
	})

	return states, err
}

// userStateColumns are the columns of a userState.
const userStateColumns = `account_id, ` + roleColumns + `, COALESCE(presence_id, ''), generation, kept_family`

// roleColumns are the columns of a user's role and its limits.
const roleColumns = `CASE limited_role WHEN '' THEN role ELSE limited_role END, queue_ids, agent_ids`

// columns returns the destinations of userStateColumns.
func (u *userState) columns() []any {
	return []any{&u.accountID, &u.role, (*idList)(&u.limits.QueueIDs), (*idList)(&u.limits.AgentIDs), &u.extension,
		&u.generation, &u.keptFamily}
}

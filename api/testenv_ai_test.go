package api

import (
	"context"
	"io"
	"net/http"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
)

// addAI adds the real providers, and sessions that only remember.
func (e *env) addAI(deps *Deps) {
	e.t.Helper()
	providers, err := aiprovider.New(e.t.Context(), aiprovider.Settings{}, e.db, e.masterKeys, e.audit,
		e.metricRegistry)
	must(e.t, err)
	e.ai = &fakeSessions{report: aiprovider.TestReport{OK: true, ConnectMS: 12.5}}
	deps.AIProviders, deps.AIProviderOpener = providers, providers
	deps.CallListeners = e.ai
	deps.AITester, deps.AIAnnouncer, deps.AIMedia, deps.AICalls = e.ai, e.ai, e.ai, e.ai
}

// fakeSessions remembers what it was asked for, one field for each kind of request.
type fakeSessions struct {
	report    aiprovider.TestReport // TestProvider's answer
	refuse    error                 // answers every request but ServeMedia's, unless nil
	tested    []aiprovider.Provider
	announced []aiprovider.Announcement
	served    []aiprovider.Provider
	updated   []aisession.CallUpdate
	heard     []string // ids of the providers that listen to a call
}

func (f *fakeSessions) StartListener(_ context.Context, _, callID, providerID string) (string, error) {
	if callID != "in-progress" {
		return "", fault.NotFound("there is no such call in progress on this node")
	}
	f.heard = append(f.heard, providerID)
	return "session-1", f.refuse
}

func (f *fakeSessions) UpdateCall(_ context.Context, u aisession.CallUpdate) error {
	f.updated = append(f.updated, u)
	return f.refuse
}

func (f *fakeSessions) TestProvider(_ context.Context, p aiprovider.Provider) (aiprovider.TestReport, error) {
	f.tested = append(f.tested, p)
	return f.report, f.refuse
}

func (f *fakeSessions) Announce(_ context.Context, a aiprovider.Announcement) error {
	f.announced = append(f.announced, a)
	return f.refuse
}

func (f *fakeSessions) ServeMedia(w http.ResponseWriter, r *http.Request, p aiprovider.Provider) error {
	f.served = append(f.served, p)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	return conn.Close()
}

package api

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"trunkline/cdrindex"
	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/identity"
	"trunkline/recording"
)

const encryptionPath = "/api/v2/config/call_recording_encryption"

// addRecordings adds the real configurations and recordings, in a directory, beside the index.
func (e *env) addRecordings(deps *Deps, index *cdrindex.Index, log *slog.Logger) {
	e.t.Helper()
	configs, err := encryption.New(e.t.Context(), e.db, e.masterKeys, e.audit, e.metricRegistry)
	must(e.t, err)
	_, err = e.masterKeys.Create()
	must(e.t, err)

	e.recordingsDir = filepath.Join(e.t.TempDir(), "recordings")
	store, err := recording.OpenDir(e.recordingsDir)
	must(e.t, err)
	e.t.Cleanup(func() { _ = store.Close() })

	policies, err := callrecording.New(e.t.Context(), e.db, pathsOf{e.identity.Directory}, e.audit)
	must(e.t, err)
	deps.RecordingPolicies = policies

	recordings, err := recording.New(e.t.Context(), recording.Settings{MaxBytes: maxRecording}, recording.Deps{
		DB: e.db, Store: store, Keys: configs, Publisher: discardPublisher{}, Policies: policies, Calls: index,
		Audit: e.audit, Metrics: e.metricRegistry, Log: log,
	})
	must(e.t, err)

	index.ShowRecordings(recordings)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = recordings.Run(ctx) })
	e.t.Cleanup(func() { cancel(); running.Wait() })

	deps.LiveRecorder = recording.NewRecorder(recordings, nil)
	deps.Encryption, deps.Recordings, e.recordings = configs, recordings, recordings
}

// pathsOf are the accounts above an account.
type pathsOf struct{ directory *identity.Directory }

func (p pathsOf) Path(accountID string) []string { return p.directory.Tree().Path(accountID) }

const maxRecording = 25 << 20

// discardPublisher discards events.
type discardPublisher struct{}

func (discardPublisher) Publish(context.Context, string, []byte) error { return nil }

// counterValue returns the value of a counter without labels.
func (e *env) counterValue(name string) float64 {
	e.t.Helper()
	families, err := e.metricRegistry.Gather()
	must(e.t, err)

	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}

	e.t.Fatalf("there is no metric %s", name)
	return 0
}

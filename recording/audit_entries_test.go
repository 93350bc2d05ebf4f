package recording

import (
	"bytes"
	"slices"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/internal/fault"
)

func TestStoringReadingAndDeletingARecordingIsAudited(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		ctx := audittest.CallerContext(t, "apikey:k")
		upload := func(id string) error {
			_, err := h.Store(ctx, Upload{AccountID: "acme", RecordingID: id, Body: bytes.NewReader(testAudio(1000))})
			return err
		}

		check(t, upload("call-1"))
		if err := upload("call-1"); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("stored twice: %v", err)
		}

		check(t, must(h.Open(ctx, "acme", "call-1"))(t).Close())
		if _, err := h.Open(ctx, "acme", "call-2"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("opened what is not there: %v", err)
		}

		check(t, h.Delete(ctx, "acme", "call-1"))
		want := []string{
			"recording.delete apikey:k recording:call-1 ok", "recording.read apikey:k recording:call-1 ok",
			"recording.store apikey:k recording:call-1 ok",
		}
		if got := audittest.Entries(t, h.audited, "acme", ""); !slices.Equal(got, want) {
			t.Errorf("audit log has %q, want %q", got, want)
		}

		check(t, upload("call-3"))
		_, err := h.rows.db.ExecContext(ctx, `DROP TABLE audit_pending`)
		check(t, err)

		if audio, err := h.Open(ctx, "acme", "call-3"); err == nil {
			t.Errorf("opened %v without an entry", audio.RecordingID)
		}
		if err := h.Delete(ctx, "acme", "call-3"); err == nil {
			t.Error("deleted without an entry")
		}
		if err := upload("call-4"); err == nil {
			t.Error("stored without an entry")
		}
		if _, err := h.Metadata(ctx, "acme", "call-4"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("call-4: %v", err)
		}
	})
}

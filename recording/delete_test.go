package recording

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/internal/fault"
)

func TestADeletedRecordingIsGone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
		if err := h.Delete(t.Context(), "other", "call-1"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("another account's: %v", err)
		}

		check(t, h.Delete(t.Context(), "acme", "call-1"))
		if _, err := h.play("acme", "call-1"); fault.KindOf(err) != fault.KindNotFound || len(h.objects(t)) != 0 {
			t.Errorf("%v, objects %v", err, h.objects(t))
		}
		if err := h.Delete(t.Context(), "acme", "call-1"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("twice: %v", err)
		}

		checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
	})
}

func TestPurgingAnAccountDeletesItsRecordings(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		for i := range purgePageSize + 5 {
			must(h.storeAudio("gone", fmt.Sprint("call-", i), []byte("audio")))(t)
		}

		must(h.storeAudio("stays", "call-1", []byte("audio")))(t)
		for _, want := range []int{purgePageSize, 5, 0} {
			if n, err := h.PurgeAccount(t.Context(), "gone"); n != want || err != nil {
				t.Errorf("purged %d, %v; want %d", n, err, want)
			}
		}

		if files := h.objects(t); len(files) != 1 || !strings.Contains(files[0], "/stays/") {
			t.Errorf("left are %v", files)
		}
	})
}

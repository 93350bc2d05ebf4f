package recording

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"trunkline/internal/fault"
	"trunkline/recording/envelope"
)

// Page is some of an account's recordings, newest first.
type Page struct {
	Data         []Metadata `json:"data"`
	PageSize     int        `json:"page_size"`
	NextStartKey string     `json:"next_start_key,omitempty"` // "": the last page
}

// Sizes of a page.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// List returns the page of at most pageSize (0: DefaultPage) that begins at
// startKey, a page's NextStartKey ("": the newest).
func (s *Service) List(ctx context.Context, accountID string, pageSize int, startKey string) (*Page, error) {
	if pageSize == 0 {
		pageSize = DefaultPage
	}
	if pageSize < 1 || pageSize > MaxPage {
		return nil, fault.InvalidField("page_size", "invalid", fmt.Sprintf("page_size must be between 1 and %d", MaxPage))
	}
	from, ok := parseStartKey(startKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "start_key must be a page's next_start_key")
	}
	found, err := s.rows.list(ctx, `WHERE account_id = $1 AND (created_at, recording_id) <= ($2, $3)
		ORDER BY created_at DESC, recording_id DESC LIMIT $4`, accountID, from.createdAt, from.RecordingID, pageSize+1)
	if err != nil {
		return nil, err
	}
	page := &Page{Data: make([]Metadata, 0, len(found)), PageSize: pageSize}
	for i, r := range found {
		if i == pageSize {
			page.NextStartKey = r.startKey()
			break
		}
		page.Data = append(page.Data, r.Metadata)
	}
	return page, nil
}

func (r *row) startKey() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(r.createdAt, 10) + "." + r.RecordingID))
}

func parseStartKey(key string) (from row, ok bool) {
	if key == "" {
		return row{createdAt: math.MaxInt64}, true
	}
	text, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(text) > 200 {
		return row{}, false
	}
	at, id, ok := strings.Cut(string(text), ".")
	if !ok {
		return row{}, false
	}
	from.RecordingID = id
	from.createdAt, err = strconv.ParseInt(at, 10, 64)
	return from, err == nil && from.startKey() == key && envelope.ValidID(id)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load/requests"
)

const (
	encryptionPath = "/api/v2/config/call_recording_encryption"
	callPath       = "/ucp/v2/c2c/1002" // an extension that the simulator answers
)

// simulatedPrefix is the prefix of the ids of simulated calls.
const simulatedPrefix = "sim-"

// operation returns the request with the given name.
func (r *apiRun) operation(name string) func(ctx context.Context, n uint64) (int, error) {
	account := func(n uint64) string { return r.accounts.ids[n%uint64(len(r.accounts.ids))] }
	switch name {
	case opLogin:
		body, _ := json.Marshal(r.accounts.credentials()) // strings always marshal
		return func(ctx context.Context, _ uint64) (int, error) {
			return r.send(ctx, http.MethodPost, portalLogin, "", "", body, http.StatusOK,
				responseContains(`"access_token":"`))
		}
	case opToken:
		return func(ctx context.Context, _ uint64) (int, error) {
			return r.send(ctx, http.MethodGet, channelPath+"/stats", r.token, "", nil, http.StatusOK,
				responseContains(`"total_connections":`))
		}
	case opEncryptionGet:
		return func(ctx context.Context, n uint64) (int, error) {
			return r.send(ctx, http.MethodGet, encryptionPath, r.token, account(n), nil, http.StatusOK,
				responseContains(`"success":true`))
		}
	case opEncryptionPut:
		body := []byte(`{"enabled":true}`)
		return func(ctx context.Context, n uint64) (int, error) {
			return r.send(ctx, http.MethodPut, encryptionPath, r.token, account(n), body, http.StatusOK,
				responseContains(`"key_version":1`))
		}
	case opCall:
		return func(ctx context.Context, n uint64) (int, error) {
			caller := r.callers[n%uint64(len(r.callers))]
			return r.send(ctx, http.MethodPost, callPath, caller, "", nil, http.StatusCreated, checkSimulated)
		}
	case opLookup:
		return func(ctx context.Context, n uint64) (int, error) {
			call := r.calls[n%uint64(len(r.calls))]
			request, err := newLookupRequest(ctx, r.url, r.token, call.account, call.originationID, call.time)
			if err != nil {
				return 0, err
			}
			return r.do(request, http.StatusOK, responseContains(call.originationID))
		}
	default: // opReport
		return func(ctx context.Context, n uint64) (int, error) {
			request, err := newReportPageRequest(ctx, r.url, r.token, account(n), time.Now().Add(-24*time.Hour), 50)
			if err != nil {
				return 0, err
			}
			return r.do(request, http.StatusOK, responseContains(`"data":[`))
		}
	}
}

// responseContains returns a check that the response contains a text.
func responseContains(text string) func([]byte) error {
	want := []byte(text)
	return func(body []byte) error {
		if !bytes.Contains(body, want) {
			return fmt.Errorf("the response does not contain %s", text)
		}
		return nil
	}
}

func checkSimulated(body []byte) error {
	if !bytes.Contains(body, []byte(`"origination_call_id":"`+simulatedPrefix)) {
		return fmt.Errorf(
			"the call is not on the simulator: the server's origination.driver must be simulator, or auto")
	}
	return nil
}

func (r *apiRun) send(ctx context.Context, method, path, token, account string, body []byte, want int,
	check func([]byte) error) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if account != "" {
		request.Header.Set("X-Account-ID", account)
	}
	return r.do(request, want, check)
}

// do sends the request and returns an error for any response but the expected one.
func (r *apiRun) do(request *http.Request, want int, check func([]byte) error) (status int, err error) {
	response, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("reading the response: %w", err)
	}
	if response.StatusCode != want {
		return response.StatusCode, &requests.Unexpected{Status: response.StatusCode, Text: errorMessage(body)}
	}
	if err := check(body); err != nil {
		return response.StatusCode, &requests.Unexpected{Status: response.StatusCode, Text: err.Error()}
	}
	return response.StatusCode, nil
}

// errorMessage returns the message of an error response.
func errorMessage(body []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		return cli.Printable(e.Message)
	}
	return cli.Printable(strings.TrimSpace(string(body[:min(len(body), 200)])))
}

// newReportPageRequest returns a request for a page of the account's call records.
func newReportPageRequest(ctx context.Context, base, token, account string, since time.Time,
	size int) (*http.Request, error) {
	query := url.Values{
		"startDate": {strconv.FormatInt(since.Unix(), 10)}, "endDate": {strconv.FormatInt(time.Now().Unix(), 10)},
		"page_size": {strconv.Itoa(size)},
	}
	return newReportRequest(ctx, base, token, account, query)
}

package audit

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"trunkline/internal/sqldb"
)

// Action is the kind of an entry.
type Action string

// The actions.
const (
	Login       Action = "login"
	LoginFailed Action = "login_failed"
	LoginLocked Action = "login_locked"
	Logout      Action = "logout"

	PasswordUpdate Action = "password.update"
	OTPEnrol       Action = "otp.enrol" // outcome begun, confirmed or refused
	UserCreate     Action = "user.create"
	UserUpdate     Action = "user.update"
	UserDelete     Action = "user.delete"
	DeviceCreate   Action = "device.create"
	DeviceUpdate   Action = "device.update"
	DeviceDelete   Action = "device.delete"
	APIKeyCreate   Action = "apikey.create"
	APIKeyUpdate   Action = "apikey.update"
	APIKeyDelete   Action = "apikey.delete"
	AccountCreate  Action = "account.create"
	AccountUpdate  Action = "account.update"
	AccountDelete  Action = "account.delete"

	EncryptionRead   Action = "encryption.read"
	EncryptionUpdate Action = "encryption.update"
	RecordingStore   Action = "recording.store"
	RecordingRead    Action = "recording.read"
	RecordingDelete  Action = "recording.delete"
	RecordingExpire  Action = "recording.expire" // deleted by retention
	RecordingHold    Action = "recording.hold"
	RecordingRelease Action = "recording.release"
	AIProviderCreate Action = "ai_provider.create"
	AIProviderUpdate Action = "ai_provider.update"
	AIProviderDelete Action = "ai_provider.delete"
	WebhookCreate    Action = "webhook.create"
	WebhookUpdate    Action = "webhook.update"
	WebhookDelete    Action = "webhook.delete"

	CallRecordingUpdate Action = "call_recording.update"
	QueueConfigUpdate   Action = "queue_config.update"
	AlertConfigUpdate   Action = "alert_config.update"
	WebhookTest         Action = "webhook.test"
	FeedCheck           Action = "feed.check"
	DeadLetterRead      Action = "deadletter.read"
	DeadLetterRetry     Action = "deadletter.retry"
	DeadLetterDiscard   Action = "deadletter.discard"
	CallCancel          Action = "call.cancel"
	CallRefuse          Action = "call.refuse" // a call refused by a limit or a closed destination
	CallRecord          Action = "call.record" // start, stop, pause or resume of a recording
	AgentControl        Action = "agent.control"
	CallControl         Action = "call.control"
	CallMonitor         Action = "call.monitor" // listen, whisper or barge, by a user or an AI provider
	CDRExport           Action = "cdr.export"
	CDRRead             Action = "cdr.read" // a page or one record
	FiguresExport       Action = "figures.export"
	AuditRead           Action = "audit.read"
	RequestRefused      Action = "request.refuse" // of somebody who is authenticated; the target is the route
	SIPRegisterFailed   Action = "sip.register_failed"

	SigningKeyRotate Action = "signingkey.rotate"
	Pruned           Action = "audit.prune" // by retention; see pruning
)

// actions lists all actions, for metrics and for the check of a filter.
var actions = []Action{
	Login, LoginFailed, LoginLocked, Logout, PasswordUpdate, OTPEnrol, UserCreate, UserUpdate, UserDelete,
	DeviceCreate, DeviceUpdate, DeviceDelete, APIKeyCreate, APIKeyUpdate, APIKeyDelete,
	AccountCreate, AccountUpdate, AccountDelete, EncryptionRead, EncryptionUpdate,
	RecordingStore, RecordingRead, RecordingDelete, RecordingExpire, RecordingHold, RecordingRelease,
	CallRecordingUpdate, AIProviderCreate, AIProviderUpdate, AIProviderDelete,
	WebhookCreate, WebhookUpdate, WebhookDelete, QueueConfigUpdate, AlertConfigUpdate, WebhookTest,
	FeedCheck, DeadLetterRead, DeadLetterRetry, DeadLetterDiscard, CallCancel,
	CallRefuse, CallRecord, AgentControl, CallControl, CallMonitor, CDRExport, CDRRead, FiguresExport, AuditRead,
	RequestRefused, SIPRegisterFailed,
	SigningKeyRotate, Pruned,
}

// OutcomeOK is the outcome of a successful action. Other outcomes are the reason of a
// failure, such as wrong_password.
const OutcomeOK = "ok"

// Entry is one line of the audit log.
type Entry struct {
	ID        string `json:"id"`
	At        Moment `json:"at"`
	AccountID string `json:"account_id"` // "" if the entry has no account
	Actor     string `json:"actor"`      // user:<id>, apikey:<id>, cli:<system user> or sip:<extension>; "" if unknown
	Address   string `json:"address"`    // IP address; "" for a local action
	Action    Action `json:"action"`
	Target    string `json:"target"` // kind:id; may be ""
	Outcome   string `json:"outcome"`
}

// Moment is a time to the millisecond; in JSON it is Unix seconds with a
// fraction.
type Moment struct{ time.Time }

// String returns Unix seconds with three decimals.
func (m Moment) String() string {
	return strconv.FormatFloat(float64(m.UnixMilli())/1000, 'f', 3, 64)
}

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// Entry returns an entry with the context's caller, the current time and OutcomeOK. It is
// not stored.
func (l *Log) Entry(ctx context.Context, action Action, accountID, target string) Entry {
	caller := CallerOf(ctx)
	return Entry{
		ID: sqldb.NewID(), At: Moment{time.UnixMilli(l.now().UnixMilli())}, AccountID: accountID,
		Actor: caller.Actor, Address: caller.Address, Action: action, Target: target, Outcome: OutcomeOK,
	}
}

// isCLI reports whether a management command created the entry. The log lines of commands
// are not collected, so a server logs such an entry when it adds it to the chain.
func (e *Entry) isCLI() bool { return strings.HasPrefix(e.Actor, actorCLI) }

// Prefixes of actors.
const (
	actorCLI  = "cli:"
	actorUser = "user:"
	actorKey  = "apikey:"
)

// maxTextBytes bounds each text of an entry, in bytes.
const maxTextBytes = 256

// clean returns text as it is stored: bounded, valid UTF-8 and printable.
func clean(text string) string {
	if len(text) <= maxTextBytes && utf8.ValidString(text) && strings.IndexFunc(text, unprintable) < 0 {
		return text
	}

	text = strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxTextBytes)], "?"))

	return text[:min(len(text), maxTextBytes)]
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func (e Entry) cleaned() Entry {
	for _, text := range []*string{&e.AccountID, &e.Actor, &e.Address, &e.Target, &e.Outcome} {
		*text = clean(*text)
	}
	return e
}

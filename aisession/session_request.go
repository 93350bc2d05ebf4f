package aisession

import (
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// Request has the parameters of a session.
type Request struct {
	Provider aiprovider.Provider
	Ingress  string          // one of Ingresses
	Call     aiprotocol.Call // ids, as the provider gets them
	// Listens means that the provider only listens to the call, which is one of others. Its mode must be that.
	Listens bool
	// SessionID is the id of the session to open, "" for a new one.
	SessionID string
	// AccountID, InteractionID and OriginationCallID are those of a call that is listened to, for the events of
	// its transcripts.
	AccountID         string
	InteractionID     string
	OriginationCallID string
	Caller            string       // number as received by the ingress
	Callee            string       // number that was dialled to reach the provider, as received
	Format            audio.Format // of the call, in both directions
	// RTPTimestamps means that the timestamps given to ReceiveAudio measure time. Otherwise they count
	// the samples sent so far.
	RTPTimestamps bool
	// Parameters has what the call brings for the provider, such as X-* headers of SIP.
	Parameters map[string]string
}

// The ingresses, used as the metric label "ingress".
const (
	IngressSIP         = "sip"
	IngressAudioSocket = "audiosocket"
	IngressPCMSocket   = "pcmsocket"
	IngressListener    = "listener"
	IngressTest        = "test"
)

// Ingresses returns all ingresses.
func Ingresses() []string {
	return []string{IngressSIP, IngressAudioSocket, IngressPCMSocket, IngressListener, IngressTest}
}

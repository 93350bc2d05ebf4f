package audio

import "encoding/binary"

// pcm16Codec is the codec of 16-bit little-endian PCM.
type pcm16Codec struct{}

func (pcm16Codec) appendSamples(pcm []int16, packet []byte) []int16 {
	for ; len(packet) >= 2; packet = packet[2:] {
		pcm = append(pcm, int16(binary.LittleEndian.Uint16(packet)))
	}
	return pcm
}

// Encode implements Encoder.
func (pcm16Codec) Encode(packet []byte, pcm []int16) ([]byte, error) {
	for _, s := range pcm {
		packet = append(packet, byte(s), byte(uint16(s)>>8))
	}
	return packet, nil
}

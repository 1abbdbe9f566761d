package turn

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"time"
)

// idleWindow is the time over which the processors are watched. Tests wait and compute in turns of
// some seconds: a quiet moment is no room for one more.
const idleWindow = 15 * time.Second

// host is the machine that this program runs on. It is not safe for concurrent use.
type host struct{ samples []sample }

// sample is what the processors have done since the machine started, in clock ticks (proc(5), stat).
type sample struct {
	at          time.Time
	idle, total float64
}

// Idle compares the processors' times now with those at the beginning of the window.
func (h *host) Idle() float64 {
	now := readTimes()
	h.samples = append(h.samples, now)
	for len(h.samples) > 2 && now.at.Sub(h.samples[1].at) >= idleWindow {
		h.samples = h.samples[1:]
	}
	was := h.samples[0]
	if now.at.Sub(was.at) < idleWindow || now.total == was.total {
		return 0 // not watched for long enough
	}
	return (now.idle - was.idle) / (now.total - was.total)
}

// readTimes sums the first line of /proc/stat. Time that another virtual machine took counts as busy.
func readTimes() sample {
	s := sample{at: time.Now()}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	for i, field := range fields[1:min(len(fields), 9)] { // the rest, a guest's time, is part of the first fields
		ticks, _ := strconv.ParseFloat(field, 64)
		s.total += ticks
		if i == 1 || i == 3 || i == 4 { // nice, which gives way; idle; and waiting for a disk
			s.idle += ticks
		}
	}
	return s
}

// Available is MemAvailable of /proc/meminfo.
func (*host) Available() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

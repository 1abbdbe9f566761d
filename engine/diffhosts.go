package engine

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// hosts tells of differences of the hosts that the cluster uses. What a host has when it is first seen is no difference.
func (d *differ) hosts(before, after *View) {
	used := after.UsedHosts()
	compare(before.Hosts, after.Hosts, func(h *api.Host) string { return h.Name }, func(was, is *api.Host) {
		if is == nil || !used[is.Name] {
			return
		}
		if was == nil {
			was = &api.Host{}
		}
		if was.UID == is.UID && was.ResourceVersion == is.ResourceVersion && is.ResourceVersion != "" {
			return // most did not change, and each has many devices
		}
		d.agent(was, is)
		d.machines(was, is)
		// A host without a boot id has not reported yet: its list of devices is empty because nobody knows them.
		if was.Status.BootID != "" && is.Status.BootID != "" {
			d.devices(is.Name, was.Status.Devices, is.Status.Devices)
		}
	})
}

// agent tells of an agent that fell silent or is heard again. A host that is new, or whose agent was never judged, counts as
// heard.
func (d *differ) agent(was, is *api.Host) {
	wasDown := !was.AgentHeard()
	c := meta.FindStatusCondition(is.Status.Conditions, api.HostAgentConnected)
	isDown := c != nil && c.Status == metav1.ConditionFalse
	switch {
	case isDown && !wasDown:
		d.add(AgentDown, "host/"+is.Name, "agent disconnected: %s", c.Message)
	case wasDown && !isDown:
		d.add(AgentUp, "host/"+is.Name, "agent reconnected")
	}
}

// machines tells that two machines run as one host, or do no more.
func (d *differ) machines(was, is *api.Host) {
	_, were := was.Twins()
	text, are := is.Twins()
	switch {
	case are && !were:
		d.add(HostTwins, "host/"+is.Name, "%s", text)
	case were && !are:
		d.add(HostSingle, "host/"+is.Name, "only one machine runs as this host again")
	}
}

func (d *differ) devices(host string, before, after []api.Device) {
	id := func(x *api.Device) string { return x.ID }
	compare(sortedDevices(before), sortedDevices(after), id, func(was, is *api.Device) {
		switch {
		case was == nil:
			d.add(DeviceNew, "host/"+host+"/"+is.ID, "device %s appeared at %s", is.ID, is.Path)
		case is == nil:
			d.add(DeviceGone, "host/"+host+"/"+was.ID, "device %s, which was at %s, is gone", was.ID, was.Path)
		default:
			d.device(host, was, is)
		}
	})
}

func (d *differ) device(host string, was, is *api.Device) {
	object := "host/" + host + "/" + is.ID
	if was.Path != is.Path {
		d.add(DeviceChanged, object, "device %s is at %s, was at %s", is.ID, is.Path, was.Path)
	}
	if was.Availability != is.Availability {
		text := ""
		if len(is.Reasons) > 0 {
			text = ": " + strings.Join(is.Reasons, "; ")
		}
		d.add(DeviceChanged, object, "device %s is %s%s", is.ID, is.Availability, text)
	}
}

func sortedDevices(devices []api.Device) []api.Device {
	return slices.SortedFunc(slices.Values(devices), func(a, b api.Device) int { return strings.Compare(a.ID, b.ID) })
}

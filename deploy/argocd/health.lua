-- How an object of holdfast.io is, for Argo CD: by its conditions Ready, Reconciling and Stalled, and by the generation that
-- its status speaks of. docs/reference/conditions.md tells what they mean.
local status = obj.status or {}

local function is(health, condition)
  local message = condition.message
  if message == nil or message == "" then
    message = condition.reason
  end
  return { status = health, message = message }
end

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "it is being deleted" }
end
if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "Holdfast has not looked at its newest spec yet" }
end

local found = {}
for _, condition in ipairs(status.conditions or {}) do
  found[condition.type] = condition
end
local ready = found.Ready
if found.Stalled ~= nil and found.Stalled.status == "True" then
  return is("Degraded", found.Stalled)
end
if found.Reconciling ~= nil and found.Reconciling.status == "True" then
  return is("Progressing", found.Reconciling)
end
if ready == nil then
  return { status = "Progressing", message = "nobody has said yet how it is" }
end
if ready.status == "True" then
  return is("Healthy", ready)
end
if ready.reason == "Paused" then
  return is("Suspended", ready)
end
if ready.status == "Unknown" then
  return is("Unknown", ready)
end
return is("Progressing", ready)

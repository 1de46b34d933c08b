/** Notes about failures that a message carries. Pure. */

export interface DiagnosticErrorInfo {
  name?: string;
  message: string;
  stack?: string;
  code?: string | number;
}

export interface AssistantMessageDiagnostic {
  type: string;
  timestamp: number;
  error?: DiagnosticErrorInfo;
  details?: Record<string, unknown>;
}

/** Text of anything that was thrown. */
export function formatThrownValue(value: unknown): string {
  return value instanceof Error ? value.message || value.name : String(value);
}

export function extractDiagnosticError(error: unknown): DiagnosticErrorInfo {
  if (!(error instanceof Error)) return { name: "ThrownValue", message: formatThrownValue(error) };
  const code: unknown = (error as { code?: unknown }).code;
  return {
    name: error.name,
    message: formatThrownValue(error),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
  };
}

export function createAssistantMessageDiagnostic(
  type: string,
  error: unknown,
  details?: Record<string, unknown>,
): AssistantMessageDiagnostic {
  return {
    type,
    timestamp: Date.now(),
    error: extractDiagnosticError(error),
    ...(details === undefined ? {} : { details }),
  };
}

export function appendAssistantMessageDiagnostic(
  message: { diagnostics?: unknown[] },
  diagnostic: AssistantMessageDiagnostic,
): void {
  message.diagnostics = [...(message.diagnostics ?? []), diagnostic];
}

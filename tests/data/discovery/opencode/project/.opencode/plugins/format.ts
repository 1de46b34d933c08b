export const Format = async () => ({})

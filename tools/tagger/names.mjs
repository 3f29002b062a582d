// Writes faker's lists of names, places and companies as JSON: names.mjs > FILE
import { allFakers } from '@faker-js/faker';

const lists = {};
for (const [locale, faker] of Object.entries(allFakers)) {
  const { person, location, company } = faker.rawDefinitions;
  lists[locale] = { person, location, company };
}
process.stdout.write(JSON.stringify(lists));
